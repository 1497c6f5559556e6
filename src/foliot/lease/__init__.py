"""Who leads.

A shard of the schedules has one leader. Leading is a lease: the row of the shard in `scheduler_lock_t`, with
the holder, its last heartbeat by the database's clock, and an epoch that grows each time the lease changes
hands.

    follower ──takes a stale row, epoch + 1──▶ leader ──renews every heartbeat──▶ leader
       ▲                                         │
       └──── lost the row · could not renew in time · released on a clean stop ◀──┘

Who is right in doubt: the database. Every write of a leader carries its epoch and is refused when the row
has moved on (`store.leases.require_lease`), so a deposed leader that does not know it yet can't fire.

The trust window makes that rare: a leader trusts its lease only until the moment it *sent* its last good
renewal + TTL − margin, on its own monotonic clock. Others take over at the earliest TTL after the database
*received* it, which is later. A leader whose event loop was blocked, or that was stopped, finds the window
closed when it wakes, and steps down by itself.

What a crash leaves behind: the row with an old heartbeat. A follower takes it after the TTL, waiting (FOR
UPDATE) for a firing transaction in flight, which the database ends by itself if its client is gone.

`protocol.py` is what a provider does, `database.py` the provider that needs nothing but the database,
`leadership.py` the state machine above, over any provider. `external.py` is the provider that has a witness
beside the database and follows a dead leader sooner; `witness.py` keeps the keys there, in `etcd.py` or
`redis.py`; `opening.py` finds the one that the settings name.
"""
