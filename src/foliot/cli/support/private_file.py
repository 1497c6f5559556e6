"""Files that hold a key, or the address that a key is sent to.

They are read only if this user owns them, and others can't write them (or, for a key, read them). A symbolic
link is not followed: another user could have made it point to a different file of this user. They are written
to a temporary file with mode 0600 and then moved into place, so that no one reads a partial file.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_BYTES = 16 * 1024
OTHERS_CAN_WRITE = 0o022
OTHERS_CAN_USE = 0o077


class NotPrivateError(Exception):
    """The file exists, but other users could have changed or read it. The text says which."""


def read_private(path: Path, *, refused_mode: int) -> str:
    """Read a file of this user. Raises NotPrivateError, OSError, or ValueError if it is not short ASCII text.

    `refused_mode`: permission bits that the file must not have.
    """
    try:
        # Non-blocking: opening a named pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPrivateError("it is a symbolic link") from None
        raise
    with os.fdopen(descriptor, "rb") as file:
        # Check the open file: by now the path may refer to another one.
        _require_private(os.fstat(file.fileno()), refused_mode)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES} bytes")
    return content.decode("ascii")


def _require_private(found: os.stat_result, refused_mode: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NotPrivateError("it is not a regular file")
    if found.st_uid != os.geteuid():
        raise NotPrivateError("it belongs to another user")
    if found.st_mode & refused_mode & OTHERS_CAN_WRITE:
        raise NotPrivateError("other users can write to it; `chmod 600` changes that")
    if found.st_mode & refused_mode:
        raise NotPrivateError("other users can read it; `chmod 600` changes that")


def replace_private(path: Path, text: str) -> None:
    """Write the file with mode 0600, replacing an existing one. Raises OSError."""
    with _draft(path, text) as draft:
        draft.replace(path)


def create_private(path: Path, text: str) -> None:
    """Write a new file with mode 0600. Raises FileExistsError, or another OSError."""
    with _draft(path, text) as draft:
        os.link(draft, path)


@contextmanager
def _draft(path: Path, text: str) -> Iterator[Path]:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
        yield draft
    finally:
        draft.unlink(missing_ok=True)
