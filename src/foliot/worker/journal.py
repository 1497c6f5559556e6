"""Collects progress and log lines of running attempts, and writes them a few times a second.

Progress and log lines arrive from any thread at any rate. Only the latest progress and a limited number of
lines are kept, so that a task with much output does not slow down the others.
"""

import asyncio
import contextlib
import threading
from collections import OrderedDict
from uuid import UUID

from pydantic_core import to_json

from foliot.access.stored_text import kept_text
from foliot.kinds.target_protocol import LogLine
from foliot.model.attempt import Claim
from foliot.model.errors import DatabaseUnreachableError
from foliot.service import Wake
from foliot.worker.journal_sql import Note, Notes

EVERY_S = 0.25
LINES_PER_ATTEMPT = 1_000
CHARACTERS_PER_LINE = 4_000
LINES_WAITING = 20_000
"""Maximum number of unwritten lines of all attempts, for example while the database can't be reached."""


class AttemptJournal:
    """The unwritten progress, log lines and external id of one attempt."""

    def __init__(self, journal: "Journal", claim: Claim) -> None:
        self.claim = claim
        self.progress: str | None = None
        self.external_id: str | None = None
        self.lines: list[tuple[int, LogLine]] = []
        self._count = 0
        self._journal = journal

    def report(self, fraction: float, text: str) -> None:
        with self._journal.lock:
            self.progress = to_json({"fraction": fraction, "text": _kept(text)}).decode()
        self._journal.turn_to(self)

    def keep_external_id(self, external_id: str) -> None:
        with self._journal.lock:
            self.external_id = external_id
        self._journal.turn_to(self)

    def log(self, line: LogLine) -> None:
        with self._journal.lock:
            self._count += 1
            if self._count > LINES_PER_ATTEMPT or self._journal.waiting >= LINES_WAITING:
                return
            message = _kept(line.message)
            if self._count == LINES_PER_ATTEMPT:
                message = f"(no more than {LINES_PER_ATTEMPT} lines are kept of an attempt)"
            kept = LogLine(line.logged_ts, _kept(line.level)[:16], _kept(line.logger)[:255], message)
            self.lines.append((self._count, kept))
            self._journal.waiting += 1
        self._journal.turn_to(self)

    def take(self) -> Note:
        with self._journal.lock:
            note = Note(
                self.claim.execution_id, self.claim.attempt, self.progress, self.lines, self.external_id
            )
            self._journal.waiting -= len(self.lines)
            self.progress, self.lines, self.external_id = None, [], None
        return note

    def put_back(self, note: Note) -> None:
        with self._journal.lock:
            self.lines = [*note.lines, *self.lines]  # type: ignore[list-item]
            self._journal.waiting += len(note.lines)
            if self.progress is None:
                self.progress = note.progress
            if self.external_id is None:
                self.external_id = note.external_id


class Journal:
    """A service that writes the journals of all running attempts. The settler also calls `write`, so that an
    attempt's lines are written before its end."""

    name = "journal"

    def __init__(self, worker_id: str, store: Notes) -> None:
        self.wake = Wake()
        self.lock = threading.Lock()
        self.rows = asyncio.Lock()
        """Held while rows of running executions are written. Renewing, settling and the journal each write
        many rows, in an order that the database chooses. Without this lock they could deadlock."""
        self._worker_id = worker_id
        self._store = store
        self.waiting = 0
        """Number of lines that are not written yet."""
        self._running = 0
        self._turn = asyncio.Lock()
        self._touched: OrderedDict[tuple[UUID, int], AttemptJournal] = OrderedDict()

    def begin(self) -> None:
        """Count an attempt that has started. While any runs, the journal is written regularly."""
        self._running += 1
        if self._running == 1:
            self.wake.set()

    def end(self) -> None:
        self._running -= 1

    def open(self, claim: Claim) -> AttemptJournal:
        return AttemptJournal(self, claim)

    def turn_to(self, page: AttemptJournal) -> None:
        with self.lock:
            self._touched[(page.claim.execution_id, page.claim.attempt)] = page

    async def step(self) -> float | None:
        await self.write()
        return EVERY_S if self._running else None

    async def write(self) -> None:
        """Write everything collected so far. If the database can't be reached, keep it for the next time."""
        # One write at a time: when this returns, everything collected before the call is written.
        async with self._turn:
            await self._write()

    async def _write(self) -> None:
        with self.lock:
            pages = list(self._touched.values())
            self._touched.clear()
        if not pages:
            return
        taken = [(page, page.take()) for page in pages]
        try:
            async with self.rows:
                await self._store.write(self._worker_id, [note for _page, note in taken])
        except (DatabaseUnreachableError, asyncio.CancelledError):
            for page, note in taken:
                page.put_back(note)
                self.turn_to(page)
            raise
        except Exception:
            # Write notes one by one: one that the database refuses is dropped, the others are not lost.
            for _page, note in taken:
                with contextlib.suppress(Exception):
                    async with self.rows:
                        await self._store.write(self._worker_id, [note])


def _kept(text: str) -> str:
    return kept_text(str(text), limit=CHARACTERS_PER_LINE)
