"""Transports: how a worker learns of executions that it can claim.

A transport delivers messages with the ids of executions that may be claimed. The claim in the database
decides who runs an execution, so a message is only a hint that reaches one worker instead of all. If a
message is lost, the leader publishes it again when nobody has claimed the execution. A duplicate message
claims nothing.

    leader: commit -> publish -> (broker confirms)          worker: receive -> claim these ids -> acknowledge

What happens after a crash or a loss:

    between commit and publish     The execution waits in the database. The dispatcher finds it by its age.
    broker away or lost a message  The same.
    between receive and claim      The broker delivers again, or the dispatcher publishes again.
    between claim and acknowledge  The message is delivered again, and claims nothing.

While a broker is away, workers poll the database themselves.
"""
