"""The demo schedules, on a virtual clock. Those that take real time are run in `tests/integration`."""

from datetime import UTC, datetime

from foliot.cli.process.demo import demo_app
from foliot.model.execution import Status
from foliot.testing import TestApp

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_every_demo_schedule_is_labelled_as_one() -> None:
    schedules = demo_app().schedules.values()
    assert len(schedules) >= 5
    assert all(spec.labels == {"demo": "true"} and spec.name.startswith("demo-") for spec in schedules)


def test_the_demo_shows_interval_cron_and_delay() -> None:
    kinds = {spec.trigger.kind for spec in demo_app().schedules.values()}
    assert kinds == {"interval", "cron", "delay"}


async def test_within_a_minute_the_demo_beats_and_retries() -> None:
    app = demo_app()
    for slow in ("demo-slow", "demo-patient"):
        del app.schedules[slow]
    async with TestApp(app, now=NOW) as test:
        await test.advance(minutes=1)
        beats = await test.executions("demo-heartbeat")
        quarters = await test.executions("demo-quarter-minute")
        flaky = (await test.executions("demo-flaky"))[0]
    assert [beat.fire_ts.second for beat in beats] == [*range(5, 60, 5), 0]
    assert [quarter.fire_ts.second for quarter in quarters] == [15, 30, 45, 0]
    assert {each.status for each in (*beats, *quarters)} == {Status.SUCCESS}
    assert (flaky.status, flaky.attempt) == (Status.SUCCESS, 3)
