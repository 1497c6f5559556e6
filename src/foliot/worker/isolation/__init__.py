"""Task functions in processes of their own, so that a timeout or a cancel really stops them.

    worker ──control socket──▶ template ──fork──▶ child, one per attempt
       ▲                                            │
       └──── a socket and two pipes per attempt ────┘

The **template** imports the modules of the task functions once and then forks a child for each attempt: a
matter of milliseconds, and memory is shared until it is written to. It has one thread and no event loop;
forking the worker itself would copy locks that other threads hold. All talk is JSON in frames, no pickle.

    run      the worker sends `fork` with the child's ends of a socket and two pipes; the child reads what to
             call from the socket, sends back progress, log lines and one result or error; the pipes are its
             stdout and stderr
    ended    only the template knows for sure that a child is gone, because it reaps it; an attempt is over
             when the template says so, not when the result is there
    stop     SIGTERM to the child's process group, SIGKILL after a grace; the template sends both, since
             only before it reaps a child is the child's number sure to be the child's

Nothing outlives its attempt. When a child has ended its group is killed, and so is whatever it started that
left the group: every child adopts its orphans, and the template adopts the child's.

What a crash leaves behind: a child that dies fails its attempt. The template dies: the kernel kills its
children, their attempts fail, the worker kills what is left of the groups, the next attempt starts another
template. The worker dies: the template sees the control socket close, kills everything and leaves; while it
still imports, the kernel kills it.
"""
