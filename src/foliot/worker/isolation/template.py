"""The template process: imports the task modules once, then forks and reaps a child per attempt.

The worker starts it with the number of its end of the control socket. It has one thread, and only waits for
requests of the worker and for the end of children.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from foliot.kinds.function_target import Task
from foliot.worker.isolation.cgroup import MemoryGroups
from foliot.worker.isolation.child import DESCRIPTORS, run_child
from foliot.worker.isolation.frames import FrameError, encode, receive
from foliot.worker.isolation.kernel import adopt_orphans, die_with_parent
from foliot.worker.isolation.loading import load
from foliot.worker.isolation.origin import Origin
from foliot.worker.limits import Limits, keep_to_cores

LEAVE_WITHIN_S = 5.0
PARENT_DIED = signal.SIGHUP


def main(descriptor: int) -> None:
    worker = os.getppid()
    die_with_parent()
    adopt_orphans()
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    try:
        setup, _ = receive(control)
    except (OSError, FrameError):
        return  # the worker has closed the socket
    if setup is None:
        return
    sys.path[:], sys.argv[:] = setup["path"], setup["argv"]
    limits = Limits(**setup["limits"])
    if limits.cpu_count is not None:
        keep_to_cores(limits.cpu_count)
    groups = None if limits.memory_bytes is None else MemoryGroups.open(limits.memory_bytes, worker)
    tasks, refused = load([Origin(**each) for each in setup["origins"]], frozenset(setup["withheld"]))
    # Objects alive now live as long as the template. Excluding them from garbage collection keeps their
    # memory shared with children.
    gc.collect()
    gc.freeze()
    # A signal that can be handled, not SIGKILL: from here on there are children to end first.
    die_with_parent(PARENT_DIED)
    # The socket is closed if the worker has stopped meanwhile. `serve` notices that and exits.
    with contextlib.suppress(OSError):
        control.sendall(encode({"served": sorted(tasks), "refused": refused}))
    Template(control, tasks, worker, groups).serve()


class Template:
    """Forks, signals and reaps children for the worker, until the worker closes the control socket."""

    def __init__(
        self, control: socket.socket, tasks: dict[str, Task], worker: int, groups: MemoryGroups | None
    ) -> None:
        self._worker = worker
        self._control = control
        self._tasks = tasks
        self._groups = groups
        self._children: dict[int, int] = {}
        """Attempts by the pid of their child."""
        self._ending: dict[int, tuple[int, set[int]]] = {}
        """By attempt: the exit status of its process, and the stray processes that must end before it is
        over."""
        self._wake, self._woken = socket.socketpair()

    def serve(self) -> None:
        self._take_signals()
        try:
            while True:
                readable, _, _ = select.select([self._control, self._wake], [], [])
                if self._wake in readable:
                    self._wake.recv(4096)
                    self._reap()
                    # A process forked from the worker may keep the socket open after the worker's death.
                    if os.getppid() != self._worker:
                        break
                if self._control in readable and not self._obey():
                    break
        except (OSError, FrameError):
            pass  # the worker is gone
        self._leave()

    def _take_signals(self) -> None:
        for end in (self._wake, self._woken):
            end.setblocking(False)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        # Ignored: a signal to the whole group or service is for the worker, which ends this process when it
        # is ready.
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, PARENT_DIED):
            signal.signal(number, lambda _number, _frame: None)

    def _obey(self) -> bool:
        frame, descriptors = receive(self._control, DESCRIPTORS)
        if frame is None:
            return False
        if "fork" in frame:
            self._fork(frame["fork"], descriptors)
        else:
            self._signal(frame["attempt"], frame["signal"])
        return True

    # --- children ---------------------------------------------------------------------------------

    def _fork(self, attempt: int, descriptors: list[int]) -> None:
        parent = os.getpid()
        if self._groups is not None:
            self._groups.add(attempt)
        # A SIGTERM that arrives before the child has its own handlers must stay pending, not be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            pid = os.fork()
        except OSError as error:
            self._remove_group(attempt)
            self._tell({"ended": attempt, "failed": f"no process could be started: {error.strerror}"})
            return
        else:
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for end in (self._control, self._wake, self._woken):
                    end.close()
                if self._groups is not None:
                    self._groups.enter(attempt)
                run_child(descriptors, self._tasks, parent)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            for descriptor in descriptors:
                os.close(descriptor)
        self._children[pid] = attempt
        self._tell({"forked": attempt, "pid": pid})

    def _remove_group(self, attempt: int) -> bool:
        return self._groups is not None and self._groups.remove(attempt)

    def _signal(self, attempt: int, number: int) -> None:
        for pid, each in self._children.items():
            if each == attempt:
                _signal_group(pid, number)

    def _reap(self) -> None:
        while (exited := _exited()) is not None:
            pid, status = exited
            attempt = self._children.pop(pid, None)
            if attempt is not None:
                # Before reaping, while the pid still belongs to this group.
                _signal_group(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            strays = self._kill_strays()
            if attempt is not None:
                self._ending[attempt] = (status, strays)
            for other, (how, waiting) in list(self._ending.items()):
                waiting.discard(pid)
                if not waiting:
                    del self._ending[other]
                    is_out_of_memory = self._remove_group(other)
                    self._tell({"ended": other, "status": how, "out_of_memory": is_out_of_memory})

    def _kill_strays(self) -> set[int]:
        """Kill processes left behind by ended children; return their pids.

        They are children of this process that it did not fork. Running children adopt their own orphans, so
        none of these belongs to a running attempt.
        """
        try:
            listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        except OSError:
            return set()
        strays = {int(pid) for pid in listed.split()} - self._children.keys()
        for pid in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return strays

    def _tell(self, frame: dict[str, Any]) -> None:
        self._control.sendall(encode(frame))

    def _leave(self) -> None:
        """End all children and the processes they started, then return."""
        self._control.close()
        for pid in list(self._children):
            _signal_group(pid, signal.SIGKILL)
        while True:
            with contextlib.suppress(OSError):
                self._reap()
            if not self._children and not self._kill_strays():
                return
            readable, _, _ = select.select([self._wake], [], [], LEAVE_WITHIN_S)
            if not readable:
                return
            self._wake.recv(4096)


def _exited() -> tuple[int, int] | None:
    """Return an ended child that is not reaped yet, and its status as from waitpid. None: there is none."""
    try:
        if not hasattr(os, "waitid"):
            pid, status = os.waitpid(-1, os.WNOHANG)
            return (pid, status) if pid else None
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    if found is None:
        return None
    is_exit = found.si_code == os.CLD_EXITED
    return found.si_pid, found.si_status << 8 if is_exit else found.si_status


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        # Just forked: it has not created its group yet, and has started no processes.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
    except PermissionError:
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]))
