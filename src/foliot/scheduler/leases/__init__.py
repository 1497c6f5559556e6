"""Leader election: which instance leads a shard.

A shard of the schedules has one leader. Leading is a lease: the row of the shard in `scheduler_lock_t`, with
the holder, its last heartbeat by the database's clock, and an epoch that grows each time the lease changes
hands.

    follower ──takes a stale row, epoch + 1──▶ leader ──renews every heartbeat──▶ leader
       ▲                                         │
       └──── lost the row · could not renew in time · released on a clean stop ◀──┘

In doubt the database is right. Every write of a leader carries its epoch, and is refused if the row has a
newer one (`require_lease` in `leases_sql.py`). So a deposed leader that does not know it yet can't fire.

The trust window makes that rare. A leader trusts its lease until it *sent* its last successful renewal
+ TTL − margin, on its own monotonic clock. Others take over at the earliest TTL after the database *received*
the renewal, which is later. A leader whose event loop was blocked, or whose process was suspended, finds the
window closed when it continues, and steps down by itself.

A crash leaves the row with an old heartbeat. A follower takes it after the TTL. It waits (FOR UPDATE) for a
firing transaction in flight, which the database ends by itself if its client is gone.

`lease_provider.py` defines what a provider does. `database_lease.py` is the provider that needs only the
database. `leadership.py` is the state machine above, for any provider. `external_lease.py` is the provider
that has a witness beside the database and replaces a dead leader sooner. `second_witness.py` keeps the keys
at the witness, with `etcd_keys.py` or `redis_keys.py`. `open_lease.py` opens the provider that the settings
name.
"""
