"""What is kept of what code and agents say: in bounds, without secrets, and such that any database holds it.

Secrets are taken out before anything is cut off: half of a value would not be recognised.
"""

from typing import Any

from pydantic_core import from_json, to_json

from foliot.security.secrets import Redactor

RESULT_BYTES = 64 * 1024
TEXT_LENGTH = 20_000

NOTHING_HIDDEN = Redactor(())


def kept_text(text: str, redactor: Redactor = NOTHING_HIDDEN, *, most: int = TEXT_LENGTH) -> str:
    """The beginning of a text."""
    return _plain(redactor.text(text)[:most])


def kept_end(text: str, redactor: Redactor = NOTHING_HIDDEN, *, most: int = TEXT_LENGTH) -> str:
    """The end of a text: of a traceback, where the error is."""
    return _plain(redactor.text(text)[-most:])


def kept_result(value: Any, redactor: Redactor = NOTHING_HIDDEN) -> str | None:
    """A result as JSON text. What JSON can't hold is kept as words; what is too long is cut off."""
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
    # PostgreSQL's JSON has no NUL.
    return text.replace("\\u0000", "\\ufffd")


def _plain(text: str) -> str:
    """No NUL, and no half of a character (as file names may have)."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
