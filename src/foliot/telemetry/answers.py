"""Limit what is read of a collector's response: the status, and at most a small body.

By default the exporter reads a response of any length to its end, even a slow one. It also takes a redirect
for success, although it does not follow it.
"""

import os
from typing import Any

import requests

MAX_ANSWER_BYTES = 4096
"""A response that is longer or has no length is not read: its connection is closed to save memory."""
_REDIRECTS = range(300, 400)
_CREDENTIALS = (
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_TRACES_CREDENTIAL_PROVIDER",
)


def wary_session() -> Any:
    """Return a session for the exporter. None: a configured credential provider creates the session."""
    if any(os.environ.get(name) for name in _CREDENTIALS):
        return None
    session = requests.Session()
    session.stream = True
    session.hooks["response"].append(_read_little)
    return session


def _read_little(response: Any, *_: object, **__: object) -> None:
    try:
        length = response.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) <= MAX_ANSWER_BYTES:
            # Not decoded: a small compressed body may expand to a large one.
            response.raw.read(decode_content=False)
        if response.status_code in _REDIRECTS:
            raise requests.RequestException(f"it answers {response.status_code}: its address is another")
    finally:
        response.close()
