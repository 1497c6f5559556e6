"""Turns fire times into executions.

There is one ShardScheduler per shard. Its services share a LeaderState (what the leader knows in its term):

    leadership   renews the lease (folder `leases/`)
    loader       fills the wheel: the horizon by pages, changes by hints, and by polling what hints missed
    firing       takes what is due, plans it, commits it in batches
    janitor      rescues, releases, restarts, prunes; each duty is a separate service
    backfiller   creates the executions of backfills, a few at a time

The wheel is only a cache, and nothing depends on it being right. The firing transaction updates a row only if
it is still as it was planned, and other rows are read again. A crash at any point loses the wheel and leaves
the rows as they are; the next leader loads one horizon from them.
"""
