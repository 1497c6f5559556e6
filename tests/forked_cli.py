"""Runs `foliot` commands as processes that are forked from one that has done the imports already.

The imports are most of what a command costs. A forked command is a process like any other: it has its own
arguments, environment, folder, standard streams, signals and exit code. Only its interpreter isn't new, so
tests of the installed program, or of how Python itself starts, run FOLIOT with `subprocess`.
"""

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).parents[1]
FOLIOT = str(Path(sys.executable).with_name("foliot"))
PACKAGES = (
    "foliot",
    "foliot.api",
    "foliot.api.access",
    "foliot.api.http",
    "foliot.api.routes",
    "foliot.cli.commands",
    "foliot.cli.process",
    "foliot.cli.support",
    "foliot.commands",
    "foliot.db",
    "foliot.instance",
    "foliot.queries",
    "foliot.sdk",
    "foliot.telemetry",
)
LIBRARIES = ("aiosqlite", "asyncpg", "encodings.idna", "httpx2", "rich.console", "uvloop", "yaml")
MAX_REQUEST = 1 << 20


class Command:
    """A running `foliot` command, with the part of the interface of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        umask: int = -1,
        start_new_session: bool = False,
    ) -> None:
        self.args = [FOLIOT, *arguments]
        self.returncode: int | None = None
        self.stdin: TextIO | None = None
        self.stdout: TextIO | None = None
        self.stderr: TextIO | None = None
        request = {
            "arguments": arguments,
            "environment": dict(os.environ if env is None else env),
            "folder": str(cwd or Path.cwd()),
            "umask": umask,
            "is_session": start_new_session,
        }
        with contextlib.ExitStack() as given:
            streams = [
                self._stream(number, each, given) for number, each in enumerate((stdin, stdout, stderr))
            ]
            self._reports, theirs = socket.socketpair()
            with theirs:
                _send(_warm_process(), request, [*streams, theirs.fileno()])
        self._reader = self._reports.makefile("r")
        self.pid = int(self._reader.readline())

    def _stream(self, number: int, given: Any, opened: contextlib.ExitStack) -> int:
        if given is None:
            return number
        if given is subprocess.DEVNULL:
            return opened.enter_context(Path(os.devnull).open("r+b", buffering=0)).fileno()
        if given is not subprocess.PIPE:
            return given if isinstance(given, int) else int(given.fileno())
        reading, writing = os.pipe()
        ours, theirs = (writing, reading) if number == 0 else (reading, writing)
        opened.callback(os.close, theirs)
        setattr(self, ("stdin", "stdout", "stderr")[number], os.fdopen(ours, "w" if number == 0 else "r"))
        return theirs

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._reports, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._reader.readline())
            self._reader.close()
            self._reports.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: str = "", timeout: float | None = None) -> tuple[str, str]:
        """Write to its stdin, read all of its output, and wait until it has ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        read: dict[TextIO, str] = {}
        threads = [
            threading.Thread(target=lambda stream=stream: read.update({stream: stream.read()}))
            for stream in (self.stdout, self.stderr)
            if stream is not None and not stream.closed
        ]
        for thread in threads:
            thread.start()
        try:
            if self.stdin is not None:
                with contextlib.suppress(BrokenPipeError), self.stdin:
                    self.stdin.write(given)
            for thread in threads:
                thread.join(None if deadline is None else max(0, deadline - time.monotonic()))
            self.wait(None if deadline is None else max(0, deadline - time.monotonic()))
        except BaseException:
            self.kill()
            raise
        finally:
            for thread in threads:
                thread.join()
            for stream in read:
                stream.close()
        return (
            "" if self.stdout is None else read.get(self.stdout, ""),
            "" if self.stderr is None else read.get(self.stderr, ""),
        )


def run(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    given: str = "",
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with this text as its stdin."""
    command = Command(
        *arguments, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = command.communicate(given, timeout)
    return subprocess.CompletedProcess(command.args, command.wait(), out, err)


@cache
def _warm_process() -> socket.socket:
    """Start the process that commands are forked from. It ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_REQUEST)
    code = (
        f"from tests.forked_cli import serve; main = serve({theirs.fileno()}); import sys; sys.exit(main())"
    )
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _send(control: socket.socket, request: dict[str, Any], descriptors: list[int]) -> None:
    if _for_python(request["environment"]) != _for_python(os.environ):
        raise ValueError("only a new interpreter follows these variables: use subprocess")
    socket.send_fds(control, [json.dumps(request).encode()], descriptors)


def _for_python(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Python reads when it starts. PYTHONPATH can be changed later."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith("PYTHON") and name != "PYTHONPATH"
    }


# --- in the process that commands are forked from --------------------------------------------------


def serve(descriptor: int) -> Callable[[], int]:
    """Import what commands need, and fork for each request.

    Returns in the forked processes only, with what they have to run.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ending = Ending()
    # Registered first, so that it's called last.
    atexit.register(ending.leave)
    # As in a process started by the installed program.
    sys.path[0] = str(Path(FOLIOT).parent)
    main = _import_all()
    if threading.active_count() > 1:
        raise RuntimeError("threads don't survive a fork")
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=descriptor)
    woken, wake = socket.socketpair()
    for each in (woken, wake):
        each.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                with contextlib.suppress(BlockingIOError):
                    woken.recv(4096)
                _report_ended(running)
            if control not in ready:
                continue
            data, descriptors, _, _ = socket.recv_fds(control, MAX_REQUEST, 4)
            if not data:
                os._exit(0)
            reports = socket.socket(fileno=descriptors.pop())
            pid = os.fork()
            if pid == 0:
                break
            for stream in descriptors:
                os.close(stream)
            running[pid] = reports
            reports.sendall(b"%d\n" % pid)
    signal.set_wakeup_fd(-1)
    for end in (control, woken, wake, reports, *running.values()):
        end.close()
    _become(json.loads(data), descriptors)
    return lambda: ending.run(main)


def _import_all() -> Callable[[], int]:
    for package in PACKAGES:
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    for library in LIBRARIES:
        importlib.import_module(library)
    return importlib.import_module("foliot.cli").main  # type: ignore[no-any-return]


def _report_ended(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with running.pop(pid) as reports, contextlib.suppress(OSError):
            reports.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Make this process what it would be if it had been started with this request."""
    for number, each in enumerate(descriptors):
        os.dup2(each, number)
        os.close(each)
    for number, usual in (
        (signal.SIGCHLD, signal.SIG_DFL),
        (signal.SIGINT, signal.default_int_handler),
    ):
        signal.signal(number, usual)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = _open_again(getattr(sys, name), mode)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    if request["umask"] >= 0:
        os.umask(request["umask"])
    if request["is_session"]:
        os.setsid()
    sys.path[1:1] = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    sys.argv = [FOLIOT, *request["arguments"]]
    with contextlib.suppress(ModuleNotFoundError):
        # Python imports it at its start, and this process may have a path that leads to another one.
        sys.modules.pop("sitecustomize", None)
        importlib.import_module("sitecustomize")


class Ending:
    """Ends a process like the interpreter does, but without clearing all modules, which takes a second."""

    def __init__(self) -> None:
        self._code: int = 1

    def run(self, main: Callable[[], int]) -> int:
        try:
            self._code = main()
        except SystemExit as leaving:
            self._code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
            raise
        return self._code

    def leave(self) -> None:
        """Leave, after the threads and the functions that were to be called at the end."""
        try:
            sys.stdout.flush()
        except OSError:
            self._code = 120
        sys.stderr.flush()
        os._exit(self._code)


def _open_again(stream: TextIO, mode: str) -> TextIO:
    """Return a stream like one that the interpreter opened, for what its descriptor is now."""
    assert isinstance(stream, io.TextIOWrapper)
    descriptor, is_unbuffered = stream.fileno(), stream.write_through
    is_line_buffered = stream.line_buffering or (mode == "w" and os.isatty(descriptor))
    raw = io.FileIO(descriptor, mode, closefd=False)
    buffer = io.BufferedReader(raw) if mode == "r" else raw if is_unbuffered else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffer,
        encoding=stream.encoding,
        errors=stream.errors,
        newline="\n",
        line_buffering=is_line_buffered and not is_unbuffered,
        write_through=is_unbuffered,
    )
