"""Prepare results, errors and output for storage: redacted, truncated, and valid in every database.

Secrets are redacted before the text is truncated, because half of a secret would not be recognised.
"""

from typing import Any

from pydantic_core import from_json, to_json

from foliot.access.secrets import Redactor

RESULT_BYTES = 64 * 1024
TEXT_LENGTH = 20_000

NOTHING_HIDDEN = Redactor(())


def kept_text(text: str, redactor: Redactor = NOTHING_HIDDEN, *, limit: int = TEXT_LENGTH) -> str:
    """Redact a text and keep its beginning, at most `limit` characters."""
    return _plain(redactor.text(text)[:limit])


def kept_end(text: str, redactor: Redactor = NOTHING_HIDDEN, *, limit: int = TEXT_LENGTH) -> str:
    """Redact a text and keep its end, at most `limit` characters. A traceback ends with the error."""
    return _plain(redactor.text(text)[-limit:])


def kept_result(value: Any, redactor: Redactor = NOTHING_HIDDEN) -> str | None:
    """Return a result as redacted JSON text. None: no result.

    Values that JSON can't represent are stored as their `repr`. Text that is too long is truncated.
    """
    if value is None:
        return None
    try:
        text = to_json(value, fallback=repr, inf_nan_mode="null", bytes_mode="base64").decode()
        if redactor is not NOTHING_HIDDEN:
            text = to_json(redactor.document(from_json(text))).decode()
    except Exception:
        text = to_json(kept_text(repr(value), redactor)).decode()
    if len(text) > RESULT_BYTES:
        text = to_json({"truncated": text[: RESULT_BYTES // 2]}).decode()
    # PostgreSQL's JSON can't store NUL.
    return text.replace("\\u0000", "\\ufffd")


def _plain(text: str) -> str:
    """Replace NUL and unpaired surrogates (which file names can contain)."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
