"""aiosqlite with one call to the connection's thread per statement.

aiosqlite needs four: to create a cursor, execute, fetch and close. Each takes as long as a small statement
itself. SQLAlchemy always fetches all rows at once, so one call is enough.
"""

import os
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import aiosqlite


class OneTripCursor:
    """The part of a cursor that SQLAlchemy uses. `execute` fetches all rows and closes the real cursor."""

    arraysize = 1

    def __init__(self, connection: "OneTripConnection") -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> "OneTripCursor":
        return self

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        await self._connection.run(lambda raw: self._keep(raw.execute(sql, parameters)))

    async def executemany(self, sql: str, parameters: Sequence[Sequence[Any]]) -> None:
        await self._connection.run(lambda raw: self._keep(raw.executemany(sql, parameters)))

    async def fetchall(self) -> list[Any]:
        return self._rows

    async def close(self) -> None:
        """Do nothing: the cursor is closed already."""

    def _keep(self, cursor: sqlite3.Cursor) -> None:
        self.description = cursor.description
        self._rows = cursor.fetchall() if cursor.description else []
        self.rowcount = cursor.rowcount
        self.lastrowid = cursor.lastrowid
        cursor.close()


class OneTripConnection(aiosqlite.Connection):
    def cursor(self) -> Any:
        return OneTripCursor(self)

    async def run(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Run a function on the connection, in its thread."""
        await self._execute(work, self._conn)  # type: ignore[no-untyped-call]


def connector(path: str) -> Callable[[], Awaitable[aiosqlite.Connection]]:
    """Return a function that opens connections to the file. It raises if the file's folder does not exist."""

    async def connect() -> aiosqlite.Connection:
        _require_folder(path)
        _create_private(path)
        connection = OneTripConnection(lambda: sqlite3.connect(path), iter_chunk_size=64)
        # An unclosed connection must not keep the process alive.
        connection._thread.daemon = True
        return await connection

    return connect


def _create_private(path: str) -> None:
    """Create the file with mode 0600 if it does not exist. SQLite gives its companion files the same mode.

    An existing file keeps its mode.
    """
    try:
        # realpath: O_EXCL does not follow a symbolic link, but SQLite does. An existing file must not be
        # opened here: closing it would drop SQLite's locks on it in this process.
        os.close(os.open(os.path.realpath(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        # It exists, or it can't be created. In the second case SQLite reports the error.
        return


def _require_folder(path: str) -> None:
    """Check for the folder before the driver does: its error says less, and it leaves a thread running."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
