"""The operator's key of `foliot up`: FOLIOT_ADMIN_KEY, or a key that the first start generates and stores.

It is stored next to the database in a file that only its owner may read. Commands in the same folder read it.
"""

import secrets
from contextlib import suppress
from pathlib import Path

from foliot.access.keys import OperatorKey
from foliot.cli.support.private_file import (
    OTHERS_CAN_USE,
    NotPrivateError,
    create_private,
    read_private,
    replace_private,
)
from foliot.db.opening import file_of
from foliot.model.errors import SettingError

KEY_BYTES = 32


def key_file(database_url: str) -> Path:
    """Return the path of the key file: next to a SQLite file, else in the current folder of `foliot up`."""
    return _beside(database_url, "admin-key")


def running_file(database_url: str) -> Path:
    """Return the path of the file in which a running `foliot up` stores its address."""
    return _beside(database_url, "up")


def _beside(database_url: str, suffix: str) -> Path:
    path = file_of(database_url)
    return Path(f"foliot.{suffix}") if path is None else path.with_name(f"{path.name}.{suffix}")


def read_key(path: Path) -> str | None:
    """Return the stored key. None: there is none. Raises SettingError."""
    try:
        text = read_private(path, refused_mode=OTHERS_CAN_USE).strip()
        OperatorKey(text)
    except FileNotFoundError:
        return None
    except NotPrivateError as error:
        raise SettingError(f"the operator's key in {path} is not used: {error}") from None
    except (OSError, ValueError) as error:
        raise SettingError(f"the operator's key can't be read from {path}: {error}") from None
    return text


def keep_key(path: Path) -> str:
    """Return the stored key; generate it if needed. Two processes that start at once get the same key."""
    known = read_key(path)
    if known is not None:
        return known
    made = secrets.token_urlsafe(KEY_BYTES)
    try:
        create_private(path, made + "\n")
    except FileExistsError:
        return read_key(path) or made
    except OSError as error:
        raise _not_kept(path, error) from None
    return made


def keep_given_key(path: Path, key: str) -> None:
    """Store the key of FOLIOT_ADMIN_KEY, replacing another, for commands in this folder.

    Commands never send FOLIOT_ADMIN_KEY itself. Raises SettingError.
    """
    with suppress(SettingError):
        if read_key(path) == key:
            return
    try:
        replace_private(path, key + "\n")
    except (OSError, UnicodeEncodeError) as error:
        raise _not_kept(path, error) from None


def _not_kept(path: Path, error: Exception) -> SettingError:
    return SettingError(f"the operator's key can't be kept in {path}: {getattr(error, 'strerror', error)}")
