"""aiosqlite with one trip to the connection's thread per statement.

aiosqlite takes one for making a cursor, one for executing, one for fetching and one for closing, each as long
as a small statement itself takes. SQLAlchemy always fetches everything at once, so one does.
"""

import os
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import aiosqlite


class OneTripCursor:
    """A cursor, as far as SQLAlchemy uses one, that has fetched everything and is closed once it executed."""

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
        """Nothing to do: it is."""

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
        """Do something with the connection, in its thread."""
        await self._execute(work, self._conn)  # type: ignore[no-untyped-call]


def connector(path: str) -> Callable[[], Awaitable[aiosqlite.Connection]]:
    """Opens connections to the file; refuses where there is no folder for it."""

    async def connect() -> aiosqlite.Connection:
        _require_folder(path)
        _create_private(path)
        connection = OneTripConnection(lambda: sqlite3.connect(path), iter_chunk_size=64)
        # A connection that nobody closed must not keep the process from ending.
        connection._thread.daemon = True
        return await connection

    return connect


def _create_private(path: str) -> None:
    """Create the file with mode 0600 if it does not exist; SQLite gives its companions the same mode.

    A file that exists keeps the mode that its owner gave it.
    """
    try:
        # Through a symbolic link: O_EXCL does not follow one, and SQLite does. An existing file must not be
        # opened here: closing it would drop SQLite's locks on it in this process.
        os.close(os.open(os.path.realpath(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        # It exists, or it can't be created. SQLite says then what is wrong.
        return


def _require_folder(path: str) -> None:
    """Before the driver tries: it would say less, and leave a thread behind."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
