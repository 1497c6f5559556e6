"""Where state lives.

`protocol.py` says what the engine asks of a store, in six narrow parts; each part is one class in a file of
its own, written once in SQLAlchemy Core for both databases:

    leases.py      who leads a shard, and the epoch that fences everyone else
    firing.py      due schedules in, decided rows out: one transaction
    schedules.py   definitions, their versions, and every change of them
    work.py        what workers do: claim, renew, settle
    upkeep.py      what the leader's janitor does: rescue, release, prune
    registry.py    instances and task functions

What differs between the databases is a Dialect, in `postgres.py` and `sqlite.py` and nowhere else.
"""
