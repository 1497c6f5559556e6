"""Entry point of a forked child: set up the process, run one function, report how it ended, and exit."""

import contextlib
import faulthandler
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

from foliot.kinds.function_target import Task
from foliot.kinds.target_protocol import AttemptFailedError, Fire
from foliot.kinds.task_tracing import flush as flush_spans
from foliot.kinds.task_tracing import joined
from foliot.worker.isolation.channel import Channel, log_to
from foliot.worker.isolation.frames import receive
from foliot.worker.isolation.kernel import adopt_orphans, die_with_parent, prefer_as_victim

DESCRIPTORS = 3
"""Descriptors sent with a fork request: the child's ends of its socket, its stdout and its stderr."""


def run_child(descriptors: Sequence[int], tasks: Mapping[str, Task], parent: int) -> NoReturn:
    """Run one request and exit the process. Never returns to the template's code."""
    status = 1
    try:
        _settle_in(parent)
        connection, output, errors = descriptors
        _take_over_output(output, errors)
        worker = socket.socket(fileno=connection)
        request, _ = receive(worker)
        if request is not None:
            status = _carry_out(Channel(worker), tasks, request)
    except BaseException:
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        # Not sys.exit: exit handlers and threads inherited from the template must not run here.
        os._exit(status)


def _settle_in(parent: int) -> None:
    os.setsid()
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    adopt_orphans()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _take_over_output(output: int, errors: int) -> None:
    for number, descriptor in ((1, output), (2, errors)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout = _lines_to(1)
    sys.stderr = _lines_to(2)
    faulthandler.enable()


def _lines_to(descriptor: int) -> Any:
    return open(descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _carry_out(channel: Channel, tasks: Mapping[str, Task], request: Mapping[str, Any]) -> int:
    log_to(channel)
    prefer_as_victim()
    try:
        task = tasks[request["task"]]
        fire = _fire_of(request["fire"], channel)
        bound = task.bind(request["args"], fire)
        os.environ["TRACEPARENT"] = fire.traceparent  # for the programs that the function starts
        with joined(fire):
            value = task.function(**bound)
        _flush()
        channel.result(value)
    except AttemptFailedError as failure:
        _flush()
        channel.refusal(failure)
    except BaseException as failure:
        _flush()
        channel.error(failure)
        if not channel.is_mine:
            raise
    return 0


def _flush() -> None:
    """Flush spans and output before the end is reported. The function may have closed the streams."""
    with contextlib.suppress(Exception):
        flush_spans()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _fire_of(fields: Mapping[str, Any], channel: Channel) -> Fire:
    return Fire(
        UUID(fields["execution_id"]),
        UUID(fields["schedule_id"]),
        fields["schedule_name"],
        datetime.fromisoformat(fields["fire_ts"]),
        fields["attempt"],
        channel.progress,
        lambda: str(fields["traceparent"]),
    )
