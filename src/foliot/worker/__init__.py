"""Carries executions out.

    claim    takes the most urgent executions of its queues, as many as there is room for; each claim is an
             attempt, with a number that fences all earlier ones
    run      the target, under the timeout (`attempt.py`); sync functions in processes of their own
             (`isolation/`), so that a timeout or a cancel really ends them
    renew    all leases in one statement, and learns which work must stop
    journal  progress and log lines, a few times a second
    settle   finished attempts in batches, on condition that they are still this worker's

Claiming, renewing, the journal and settling are services of their own: none waits for another.

What a crash leaves behind: executions in state `running` whose lease runs out; the leader's janitor rescues
them. A worker that can't renew stops its work before the lease runs out, so that two never work at once for
longer than the database can tell them apart.
"""
