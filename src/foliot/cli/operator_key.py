"""The operator's key of `foliot up`: FOLIOT_ADMIN_KEY, or one that the first start makes and keeps.

It lies in a file beside the database that only its owner may read; commands in the same folder find it there.
"""

import os
import secrets
from pathlib import Path

from foliot.model.errors import SettingError
from foliot.security.keys import OperatorKey
from foliot.store.sql import MEMORY, parse_url

KEY_BYTES = 32


def key_file(database_url: str) -> Path:
    """Beside a SQLite file; for a database elsewhere in the folder that `foliot up` was started in."""
    return _beside(database_url, "admin-key")


def running_file(database_url: str) -> Path:
    """Where a `foliot up` says at which address it serves, while it does."""
    return _beside(database_url, "up")


def _beside(database_url: str, suffix: str) -> Path:
    database = parse_url(database_url).database
    if database_url == MEMORY or not database_url.startswith("sqlite") or database is None:
        return Path(f"foliot.{suffix}")
    path = Path(database)
    return path.with_name(f"{path.name}.{suffix}")


def read_key(path: Path) -> str | None:
    """The key that is kept; None: there is none. Raises SettingError."""
    try:
        text = path.read_text(encoding="ascii").strip()
        OperatorKey(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SettingError(f"the operator's key can't be read from {path}: {error}") from None
    return text


def keep_key(path: Path) -> str:
    """The key that is kept; made now if there is none. Of two that start at once both get the same."""
    known = read_key(path)
    if known is not None:
        return known
    made = secrets.token_urlsafe(KEY_BYTES)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        # Written aside and linked, so that nobody ever reads half of it.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(made + "\n")
        try:
            os.link(draft, path)
        except FileExistsError:
            return read_key(path) or made
        finally:
            draft.unlink()
    except OSError as error:
        raise SettingError(f"the operator's key can't be kept in {path}: {error.strerror}") from None
    return made
