"""Check that the epochs have counted every leader.

Only the current epoch is stored. But each execution row names the instance that led its shard, and the epoch
grows with each new leader. So a shard's epoch is at least the number of leader changes in the rows. If there
are more changes than that, two instances led at once or the epoch was set back.
"""

from collections.abc import AsyncIterator, Mapping

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.tables.access import audit_t
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.verify.finding import Finding, FindingKind, VerifiedSpan


async def read_epochs(connection: AsyncConnection) -> dict[int, int]:
    """Return the epoch of every shard, by shard number."""
    table = scheduler_lock_t
    statement = select(table.c.epoch).order_by(table.c.lock_id)
    return dict(enumerate((await connection.execute(statement)).scalars()))


async def check_epochs(
    connection: AsyncConnection, span: VerifiedSpan, epochs: Mapping[int, int], known: Mapping[int, int]
) -> AsyncIterator[Finding]:
    """Yield epochs that are too small. `known`: epochs by shard that were read earlier."""
    for shard, epoch in known.items():
        if shard in epochs and epochs[shard] < epoch:
            wrong = f"the epoch of shard {shard} is {epochs[shard]}"
            yield Finding(FindingKind.EPOCH, wrong, f"at least {epoch}, which it had reached before")
    if not epochs:
        return
    for shard, leaders in (await _leaders(connection, span, len(epochs))).items():
        if leaders > epochs[shard]:
            wrong = f"shard {shard} was led {leaders} times in turn, its epoch is {epochs[shard]}"
            yield Finding(FindingKind.EPOCH, wrong, f"an epoch of at least {leaders}, or fewer leaders")


async def _leaders(connection: AsyncConnection, span: VerifiedSpan, shards: int) -> dict[int, int]:
    """Return how often each shard changed its leader since the number of shards was last changed."""
    resharded = select(func.max(audit_t.c.audit_ts)).where(audit_t.c.action.like("%reshard%"))
    changed = (await connection.execute(resharded)).scalar_one()
    if changed is not None:
        span = VerifiedSpan(max(span.first, changed), span.last)
    rows = execution_t
    shard = schedule_t.c.slot % shards
    in_order = func.lag(rows.c.scheduler_instance_id).over(
        partition_by=shard, order_by=(rows.c.created_ts, rows.c.execution_id)
    )
    led = (
        select(shard.label("shard"), rows.c.scheduler_instance_id.label("leader"), in_order.label("before"))
        .join(schedule_t, schedule_t.c.schedule_id == rows.c.schedule_id)
        .where(
            text("execution_t.triggered_by = 'scheduler'"),
            rows.c.scheduler_instance_id.is_not(None),
            rows.c.execution_id >= span.first_id,
            rows.c.created_ts.between(span.first, span.last),
        )
        .subquery()
    )
    statement = (
        select(led.c.shard, func.count().label("leaders"))
        .where(led.c.leader.is_distinct_from(led.c.before))
        .group_by(led.c.shard)
    )
    return {row.shard: row.leaders for row in await connection.execute(statement)}
