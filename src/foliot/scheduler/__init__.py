"""Time into executions.

One ShardScheduler per shard, of services that share a Term (what the leader knows while it leads):

    leadership   keeps the lease (room `lease/`)
    loader       fills the wheel: the horizon by pages, changes by hints, whatever those missed by polling
    firing       takes what is due, plans it, commits it in batches
    janitor      rescues, releases, restarts, prunes; each duty is a service of its own
    backfiller   makes the executions of backfills, a few at a time

The wheel is only a memory of the past, so nothing depends on it being right: the firing transaction moves a
row only if it is still as it was planned, and reads again those that are not. A crash at any line leaves the
wheel lost and the rows as they are; the next leader loads one horizon from them.
"""
