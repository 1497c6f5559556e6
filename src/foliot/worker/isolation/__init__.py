"""Runs task functions in separate processes, so that a timeout or a cancel really stops them.

    worker ──control socket──▶ template ──fork──▶ child, one per attempt
       ▲                                            │
       └──── a socket and two pipes per attempt ────┘

The **template** imports the modules of the task functions once and then forks a child for each attempt. A
fork takes milliseconds, and memory is shared until it is written to. The template has one thread and no event
loop: forking the worker itself would copy locks that other threads hold. All messages are JSON, not pickle.

    run      The worker sends `fork` with the child's ends of a socket and two pipes. The child reads from the
             socket what to call, and sends back progress, log lines and one result or error. The pipes are
             its stdout and stderr.
    ended    Only the template knows for sure that a child is gone, because it reaps it. An attempt is over
             when the template reports this, not when the result arrives.
    stop     SIGTERM to the child's process group, SIGKILL after a grace period. The template sends both: only
             before it reaps a child is the pid sure to be that child's.

No process outlives its attempt. When a child has ended, its group is killed, and also processes it started
that left the group: every child adopts its orphans, and the template adopts the child's.

What happens after a crash:

    child       Its attempt fails.
    template    The kernel kills its children and their attempts fail. The worker kills the rest of their
                groups. The next attempt starts a new template.
    worker      The template sees the control socket close, kills everything and exits. If it is still
                importing, the kernel kills it.
"""
