"""Independent checker of the stored history: was every due time decided exactly once?

It does not trust the code that fires. It computes due times again from the versions of the schedules, with a
walker that shares no code with it (`walker`, `cron`, `rules`, `wall_times`). When a version applies follows
from the versions and the rows (`version_periods`). The due times are then compared one by one with the
execution rows (`ledger`). Other invariants of executions, attempts, epochs and the outbox are checked with
statements that return only violations (`states`, `epochs`, `outbox`).

Everything is read in one snapshot and nothing is written, so it can run while the cluster works. Whatever
can't be checked is counted and reported.
"""
