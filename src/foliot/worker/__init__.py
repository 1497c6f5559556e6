"""The worker: claims executions, runs their targets and writes their results.

    claim    Claim the most urgent executions of the worker's queues, up to its free slots. Each claim is an
             attempt. Its number fences all earlier attempts.
    run      Run the target under its timeout (`attempt.py`). Sync functions run in separate processes
             (`isolation/`), so that a timeout or a cancel really ends them.
    renew    Renew all leases in one statement. It also returns which attempts must stop.
    journal  Write progress and log lines a few times a second.
    settle   Write the results of finished attempts in batches, only for executions this worker still holds.

Claiming, renewing, the journal and settling are separate services. None of them waits for another.

After a crash, executions stay in state `running` until their lease expires. Then the leader's janitor rescues
them. A worker that can't renew stops its attempts before the lease expires, so that two workers don't run the
same execution at once for longer than the database can tell them apart.
"""
