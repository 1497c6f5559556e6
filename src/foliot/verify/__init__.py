"""An independent checker of the stored history: was every due time decided exactly once?

It trusts nothing that decided: due times are worked out anew from the versions of the schedules, by a walker
that shares no code with what fires (`walker`, `cron`, `rules`, `walls`). What is due when follows from the
versions and the rows themselves (`stretches`), and is compared with the ledger time by time (`ledger`).
What else must hold of executions, attempts, epochs and the outbox is asked of the database in statements that
return only what is wrong (`states`, `epochs`, `outbox`).

All of it is read in one snapshot and nothing is written, so it may run beside a cluster at work. What can't
be checked is counted and named, never passed over.
"""
