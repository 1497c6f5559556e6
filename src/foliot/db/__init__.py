"""Where state lives.

`protocol.py` says what the engine asks of a store, in narrow parts; each part is one class in a file of
its own, written once in SQLAlchemy Core for both databases:

    leases.py      who leads a shard, and the epoch that fences everyone else
    firing.py      due schedules in, decided rows out: one transaction
    schedules.py   definitions, their versions, and every change of them
    work.py        what workers do: claim, renew, settle
    notes.py       what running work says of itself: progress and log lines
    executions.py  commands and reading single executions
    agents.py      executions that an agent finishes by itself
    backfills.py   the times of the past that somebody asked to run
    upkeep.py      what the leader's janitor does: rescue, release, prune
    held.py        how held executions are found and released
    registry.py    instances and task functions
    calendars.py   named sets of excluded days
    notification_rules.py  whom to tell of what
    notifications.py       messages, and how far their delivery has come
    sightings.py           what the notifier reads of schedules and executions
    incidents.py           what it found wrong, and decided
    secrets.py     values that targets need and nobody may read

What differs between the databases is a Dialect, in `postgres.py` and `sqlite.py` and nowhere else.
"""
