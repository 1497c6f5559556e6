"""What running work says of itself is written down, in bounds, and before its end is."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from foliot.kinds.target_protocol import LogLine
from foliot.model.attempt import Claim
from foliot.model.errors import DatabaseUnreachableError
from foliot.model.execution import TriggeredBy
from foliot.model.policy import Priority
from foliot.worker.journal import CHARACTERS_PER_LINE, LINES_PER_ATTEMPT, Journal
from foliot.worker.journal_sql import Note, Notes

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Written(Notes):
    """A store that keeps what it is given, and can be away or picky."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.is_away = False
        self.refused: UUID | None = None

    async def write(self, worker_id: str, notes: Sequence[Note]) -> None:
        if self.is_away:
            raise DatabaseUnreachableError("away")
        if any(note.execution_id == self.refused for note in notes):
            raise ValueError("not storable")
        self.notes.extend(notes)


def claim() -> Claim:
    return Claim(
        execution_id=uuid4(),
        schedule_id=uuid4(),
        host_id=uuid4(),
        aggregate_version=1,
        fire_ts=NOW,
        attempt=1,
        failed_attempts=0,
        args=None,
        queue="default",
        priority=Priority.MEDIUM,
        triggered_by=TriggeredBy.SCHEDULER,
        ready_ts=NOW,
        started_ts=NOW,
    )


def line(message: str) -> LogLine:
    return LogLine(NOW, "info", "app", message)


def messages(store: Written) -> list[str]:
    return [each[1][3] for note in store.notes for each in note.lines]


async def test_the_latest_progress_and_all_lines_are_written() -> None:
    store = Written()
    journal = Journal("worker", store)
    page = journal.open(claim())
    page.report(0.1, "begun")
    page.report(0.5, "half way")
    page.log(line("one"))
    page.log(line("two"))
    await journal.write()
    [note] = store.notes
    assert note.progress == '{"fraction":0.5,"text":"half way"}'
    assert [number for number, _ in note.lines] == [1, 2]
    await journal.write()
    assert store.notes == [note]


async def test_it_writes_while_something_runs_and_rests_when_nothing_does() -> None:
    journal = Journal("worker", Written())
    assert await journal.step() is None
    journal.begin()
    assert journal.wake.is_set
    assert await journal.step() is not None
    journal.end()
    assert await journal.step() is None


async def test_no_more_than_the_limit_is_kept_and_the_last_line_says_so() -> None:
    store = Written()
    journal = Journal("worker", store)
    page = journal.open(claim())
    for number in range(LINES_PER_ATTEMPT + 50):
        page.log(line(f"{number} " + "x" * 2 * CHARACTERS_PER_LINE))
    await journal.write()
    kept = messages(store)
    assert len(kept) == LINES_PER_ATTEMPT
    assert "no more" in kept[-1]
    assert max(map(len, kept)) == CHARACTERS_PER_LINE


async def test_what_no_database_can_hold_is_replaced() -> None:
    store = Written()
    journal = Journal("worker", store)
    journal.open(claim()).log(line("a\0b\ud800c"))
    await journal.write()
    assert messages(store) == ["a\ufffdb?c"]


async def test_nothing_is_lost_while_the_database_is_away() -> None:
    store = Written()
    journal = Journal("worker", store)
    page = journal.open(claim())
    page.log(line("one"))
    page.report(0.5, "")
    store.is_away = True
    with pytest.raises(DatabaseUnreachableError):
        await journal.write()
    page.log(line("two"))
    store.is_away = False
    await journal.write()
    assert messages(store) == ["one", "two"]
    assert store.notes[0].progress is not None


async def test_one_that_can_not_be_stored_does_not_hold_up_the_others() -> None:
    store = Written()
    journal = Journal("worker", store)
    bad, good = journal.open(claim()), journal.open(claim())
    store.refused = bad.claim.execution_id
    bad.log(line("bad"))
    good.log(line("good"))
    await journal.write()
    assert messages(store) == ["good"]
