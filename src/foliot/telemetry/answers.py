"""What a collector answers: its status counts, and no more than a little of the rest is read.

The exporter by itself reads an answer to its end, however long that is and however slowly it comes, and takes
a redirect, which it does not follow, for success.
"""

import os
from typing import Any

import requests

MAX_ANSWER_BYTES = 4096
"""What is longer, or does not say how long it is, costs a connection instead of memory."""
_REDIRECTS = range(300, 400)
_CREDENTIALS = (
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_TRACES_CREDENTIAL_PROVIDER",
)


def wary_session() -> Any:
    """For the exporter; None: it has one of its own, made by who gives it its credentials."""
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
            # As it is: a little that is compressed may be much.
            response.raw.read(decode_content=False)
        if response.status_code in _REDIRECTS:
            raise requests.RequestException(f"it answers {response.status_code}: its address is another")
    finally:
        response.close()
