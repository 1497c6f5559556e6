"""How an execution reaches a worker.

A transport carries *tickets*: the ids of executions that may be claimed. The claim in the database stays the
authority, so a ticket is only a hint that reaches one worker instead of all: one that is lost is made good by
the leader, which publishes again what nobody took; one that comes twice finds nothing to claim.

    leader: commit -> publish -> (broker confirms)          worker: receive -> claim these ids -> acknowledge

A crash between commit and publish, a broker that is away or loses what it was given: the execution waits in
the database, and the dispatcher finds it by its age. A crash between receive and claim: the broker delivers
again, or the dispatcher publishes again. A crash between claim and acknowledge: the ticket comes again, and
claims nothing. While a broker is away, workers look into the database themselves.
"""
