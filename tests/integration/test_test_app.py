"""TestApp does what people do by the same commands as production: same checks, same events."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot import Foliot, every
from foliot.db.database import Database
from foliot.model.errors import InvalidError
from foliot.model.event import ExecutionTriggered, ScheduleChanged
from foliot.model.execution import Status
from foliot.model.schedule import ChangeKind
from foliot.testing import TestApp

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def application() -> Foliot:
    app = Foliot("memory")

    @app.task
    async def send_report(region: str, copies: int = 1) -> str:
        return f"{region} x {copies}"

    app.schedule("report", send_report, args={"region": "eu"}, when=every(hours=1))
    return app


@pytest.mark.parametrize("args", [{"colour": "red"}, {"copies": "many"}, {"region": "a\0b"}])
async def test_arguments_that_production_refuses_are_refused(args: dict[str, str]) -> None:
    async with TestApp(application(), now=NOW) as t:
        with pytest.raises(InvalidError, match="args"):
            await t.trigger("report", args)
        assert await t.executions("report") == []


async def test_a_run_by_hand_is_told_to_observers_and_runs() -> None:
    async with TestApp(application(), now=NOW) as t:
        execution_id = await t.trigger("report", {"copies": 2})
        [told] = [each for each in t.recorder.events if isinstance(each, ExecutionTriggered)]
        assert told.execution_id == execution_id
        [execution] = await t.executions("report")
        assert (execution.status, execution.result) == (Status.SUCCESS, "eu x 2")


async def test_a_pause_that_ends_in_the_past_is_refused() -> None:
    async with TestApp(application(), now=NOW) as t:
        with pytest.raises(InvalidError, match="until_ts"):
            await t.pause("report", until=NOW - timedelta(hours=1))
        assert not (await t.schedule("report")).paused


async def test_pausing_and_resuming_are_told_to_observers() -> None:
    async with TestApp(application(), now=NOW) as t:
        await t.pause("report", reason="move")
        await t.advance(hours=3)
        assert [each.status for each in await t.executions("report")] == []
        await t.resume("report")
        await t.advance(hours=1)
        assert [each.status for each in await t.executions("report")] == [Status.SUCCESS]
        kinds = [each.change for each in t.recorder.events if isinstance(each, ScheduleChanged)]
        assert kinds[-2:] == [ChangeKind.PAUSED, ChangeKind.RESUMED]


async def test_a_month_in_which_nothing_is_due_takes_few_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    statements = 0
    async with TestApp(Foliot("memory"), now=NOW) as t:
        for name in ("read", "write"):
            call = getattr(Database, name)

            def counted(*args: Any, call: Callable[..., Any] = call, **options: Any) -> Any:
                nonlocal statements
                statements += 1
                assert statements <= 30 * 60, "each service has a few per day"
                return call(*args, **options)

            monkeypatch.setattr(Database, name, counted)
        await t.advance(days=30)
    assert statements >= 30
