"""A schedule that can't be planned is put aside, and never blocks its batch."""

from sqlalchemy import update

from foliot.model.event import ScheduleParked
from foliot.model.execution import Status
from foliot.model.schedule import ScheduleState
from foliot.planning.change import edit
from foliot.store.dialect import Pool
from foliot.store.schema import schedule_t
from foliot.store.sql import SqlStore
from tests.engine import AUTHOR, add, every_second, running, seen, until


async def test_a_schedule_that_can_not_be_planned_is_parked_and_the_others_fire(
    store: SqlStore, database_url: str
) -> None:
    broken = await add(store, every_second("broken"))
    fine = await add(store, every_second("fine"))
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        # As after a change of the rules, or of the zones that there are.
        nonsense = {"kind": "cron", "expression": "* * * * *", "timezone": "Mars/Olympus"}
        await connection.execute(
            update(schedule_t).where(schedule_t.c.schedule_id == broken.schedule_id).values(trigger=nonsense)
        )
    async with running(database_url) as (_, recorder):

        async def fine_has_fired() -> bool:
            return len(await store.schedules.executions(fine.schedule_id)) >= 2

        await until(fine_has_fired)
        await until(lambda: bool(seen(recorder, ScheduleParked)))
    parked = await store.schedules.get(broken.schedule_id)
    assert parked.state is ScheduleState.ERROR
    assert "Mars/Olympus" in (parked.state_reason or "")
    (row,) = await store.schedules.executions(broken.schedule_id)
    assert (row.status, row.reason, row.fire_ts) == (Status.SKIPPED, "error", broken.next_fire_ts)

    mended = await store.schedules.change(
        broken.schedule_id,
        lambda old, now: edit(old, every_second("mended"), now=now, author=AUTHOR),
        AUTHOR,
    )
    assert mended.state is ScheduleState.ACTIVE
    assert mended.next_run_ts is not None
