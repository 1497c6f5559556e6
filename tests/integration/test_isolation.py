"""Task functions in processes of their own: what comes back, and that nothing is left behind."""

import asyncio
import logging
import mmap
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import psutil
import pytest
import uvloop

from foliot.kinds.function_target import FunctionRunner, RemoteFailedError, TaskRegistry, describe_task
from foliot.kinds.target_protocol import Assignment, AttemptFailedError, Fire, LogLine
from foliot.model.errors import InvalidError
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.schedule import ScheduleSpec
from foliot.worker.isolation.frames import encode
from foliot.worker.isolation.processes import GRACE_S, Processes
from foliot.worker.isolation.template_process import LEAVE_WITHIN_S
from foliot.worker.limits import Limits

FIRE_TS = datetime(2026, 3, 1, 12, tzinfo=UTC)
MEGABYTE = 2**20
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


# --- the functions: the template finds them in this module by their names -------------------------


def add_up(left: int, right: int = 2) -> dict[str, int]:
    return {"sum": left + right}


def pid() -> int:
    return os.getpid()


def group_and_session() -> list[bool]:
    return [os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid()]


def what_it_is(fire: Fire) -> list[str | int]:
    return [str(fire.execution_id), fire.schedule_name, fire.fire_ts.isoformat(), fire.attempt]


def broken() -> None:
    raise ValueError("no\0good \ud800")


def refused_for_good() -> None:
    raise AttemptFailedError("the account is closed", is_permanent=True, retry_after_s=7, result=FIRE_TS)


def halfway(fire: Fire) -> None:
    fire.progress(0.5, "half way")
    fire.progress(1, "done")


def talkative() -> None:
    logging.getLogger("shop.orders").info("%d orders", 3)
    logging.getLogger("shop").debug("not asked for")
    print("a line\nand no end", end="")
    print("to stderr", file=sys.stderr)
    subprocess.run(["echo", "of a program"], check=True)
    thread = threading.Thread(target=logging.getLogger("thread").warning, args=("from a thread",))
    thread.start()
    thread.join()


def prints_a_lot() -> None:
    for number in range(20_000):
        print(number)


def leaves() -> None:
    sys.exit(3)


def leaves_at_once() -> None:
    os._exit(4)


def crashes() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def strange() -> dict[str, Any]:
    return {"at": FIRE_TS, "lock": threading.Lock(), "nan": float("nan")}


def no_json_at_all() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def huge() -> str:
    return "x" * 20 * MEGABYTE


def closes_its_output() -> str:
    sys.stdout.close()
    os.close(1)
    os.close(2)
    return "still here"


def forks(fire: Fire) -> str:
    if os.fork() == 0:
        fire.progress(0.3, "not mine to tell")
        logging.getLogger("copy").info("said by the copy")
        return "the copy"
    os.wait()
    return "the original"


def hungry(fire: Fire) -> None:
    fire.progress(0.1, str(os.getpid()))
    held = b"x" * (256 * MEGABYTE)
    time.sleep(60)
    del held


def starts_a_hungry_program(fire: Fire) -> None:
    code = f"import time; held = b'x' * {256 * MEGABYTE}; time.sleep(60)"
    started = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    fire.progress(0.1, f"{os.getpid()} {started.pid}")
    started.wait()


def reserves_much_and_uses_little() -> int:
    """As a JVM does: address space costs nothing until it is written to."""
    reserved = mmap.mmap(-1, 64 * 1024 * MEGABYTE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    reserved[: 16 * MEGABYTE] = b"x" * (16 * MEGABYTE)
    return len(reserved) // MEGABYTE


def limit_of_address_space() -> list[int]:
    return list(resource.getrlimit(resource.RLIMIT_AS))


def cpus() -> int:
    return len(os.sched_getaffinity(0))


def asynchronous_inside() -> str:
    async def answer() -> str:
        return "from its own loop"

    return asyncio.run(answer())


def waits(fire: Fire) -> None:
    fire.progress(0.1, str(os.getpid()))
    time.sleep(60)


def waits_and_ignores_term(fire: Fire) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    waits(fire)


def cleans_up(fire: Fire, file: str) -> None:
    def on_term(_number: int, _frame: object) -> None:
        Path(file).write_text("clean")
        sys.exit()

    signal.signal(signal.SIGTERM, on_term)
    waits(fire)


def waits_with_a_program(fire: Fire) -> None:
    started = subprocess.Popen(["sleep", "60"])
    fire.progress(0.1, f"{os.getpid()} {started.pid}")
    started.wait()


def waits_with_a_daemon(fire: Fire) -> None:
    """Its grandchild leaves the group and loses its parent, as daemons do."""
    fire.progress(0.1, f"{os.getpid()} {_start_daemon()}")
    time.sleep(60)


def leaves_a_daemon() -> int:
    return _start_daemon()


def _start_daemon() -> int:
    daemon = "s.Popen(['sleep', '60'], start_new_session=True, stdout=s.DEVNULL)"
    code = f"import subprocess as s; print({daemon}.pid)"
    return int(subprocess.check_output([sys.executable, "-c", code]))


async def on_the_loop() -> int:
    logging.getLogger("loop").info("here")
    return os.getpid()


FUNCTIONS: list[Callable[..., Any]] = [
    each
    for name, each in list(globals().items())
    if callable(each) and getattr(each, "__module__", "") == __name__ and not name.startswith("_")
]


# --- the stage ------------------------------------------------------------------------------------


class Stage:
    """Processes to run functions in, and what has been said by them."""

    def __init__(self, registry: TaskRegistry, processes: Processes) -> None:
        self.registry = registry
        self.processes = processes
        self.runner = FunctionRunner(registry, processes)
        self.lines: list[LogLine] = []
        self.progress: asyncio.Queue[tuple[float, str]] = asyncio.Queue()

    async def run(self, name: str, **args: Any) -> Any:
        target = {"kind": "function", "name": name, "args": args}
        trigger = {"kind": "interval", "seconds": 1}
        spec = ScheduleSpec.parse({"name": "one", "trigger": trigger, "target": target})
        fire = Fire(new_id(), new_id(), "one", FIRE_TS, 2, lambda *told: self.progress.put_nowait(told))
        return await self.runner.run(Assignment(fire, spec, args, DEFAULT_HOST_ID, self.lines.append))

    async def begun(self, name: str, **args: Any) -> tuple[asyncio.Task[Any], list[psutil.Process]]:
        """A run that has said by its progress which processes it has."""
        task = asyncio.create_task(self.run(name, **args))
        return task, await self.said()

    async def said(self) -> list[psutil.Process]:
        async with asyncio.timeout(20):
            _fraction, text = await self.progress.get()
        return [psutil.Process(int(pid)) for pid in text.split()]

    def said_by(self, logger: str) -> list[str]:
        return [line.message for line in self.lines if line.logger == logger]


@asynccontextmanager
async def stage(*more: Callable[..., Any], **options: Any) -> AsyncIterator[Stage]:
    registry = TaskRegistry()
    for function in [*FUNCTIONS, *more]:
        registry.add(describe_task(function))
    others = _of_python()
    processes = Processes(registry, **options)
    try:
        yield Stage(registry, processes)
    finally:
        await processes.close()
    assert [each for each in _of_python() if each not in others] == []


def _of_python() -> list[psutil.Process]:
    """Children of this process that run Python. Tests that ran before may have left some."""
    children = psutil.Process().children(recursive=True)
    return [each for each in children if "python" in each.name()]


@pytest.fixture
async def there() -> AsyncIterator[Stage]:
    async with stage() as made:
        yield made


async def cancelled(task: asyncio.Task[Any]) -> float:
    """Cancel a run, and say how long it took to return."""
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.monotonic() - began


# --- what comes back ------------------------------------------------------------------------------


async def test_a_function_runs_in_a_process_of_its_own(there: Stage) -> None:
    assert await there.run("add_up", left=40) == {"sum": 42}
    assert await there.run("group_and_session") == [True, True]
    pids = {await there.run("pid"), await there.run("pid"), os.getpid()}
    assert len(pids) == 3
    assert there.processes.pids() == ()


async def test_it_knows_which_execution_it_is_for(there: Stage) -> None:
    execution_id, *rest = await there.run("what_it_is")
    assert UUID(execution_id).version == 7
    assert rest == ["one", FIRE_TS.isoformat(), 2]


async def test_its_error_comes_back_with_its_traceback(there: Stage) -> None:
    with pytest.raises(RemoteFailedError) as caught:
        await there.run("broken")
    assert str(caught.value) == "ValueError: no\0good \ud800"
    trace = caught.value.remote_traceback
    assert trace is not None
    assert 'raise ValueError("no' in trace
    assert "isolation/child.py" not in trace


async def test_an_error_may_say_that_trying_again_is_no_use(there: Stage) -> None:
    with pytest.raises(AttemptFailedError, match="the account is closed") as caught:
        await there.run("refused_for_good")
    assert (caught.value.is_permanent, caught.value.retry_after_s) == (True, 7)
    assert caught.value.result == "2026-03-01T12:00:00Z"


async def test_its_progress_is_told(there: Stage) -> None:
    await there.run("halfway")
    assert [there.progress.get_nowait() for _ in range(2)] == [(0.5, "half way"), (1, "done")]


async def test_what_it_logs_and_prints_are_lines_of_the_execution(there: Stage) -> None:
    await there.run("talkative")
    assert there.said_by("shop.orders") == ["3 orders"]
    assert there.said_by("shop") == []
    assert there.said_by("thread") == ["from a thread"]
    assert there.said_by("stdout") == ["a line", "and no endof a program"]
    assert there.said_by("stderr") == ["to stderr"]
    levels = {line.logger: line.level for line in there.lines}
    assert (levels["shop.orders"], levels["thread"]) == ("info", "warning")


async def test_the_last_of_many_lines_is_not_lost(there: Stage) -> None:
    await there.run("prints_a_lot")
    assert there.said_by("stdout") == [str(number) for number in range(20_000)]


async def test_arguments_that_do_not_fit_are_refused(there: Stage) -> None:
    with pytest.raises(InvalidError, match="left"):
        await there.run("add_up", left="many")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("leaves", "SystemExit: 3"),
        ("leaves_at_once", "its process ended with exit status 4 before the function returned"),
        ("crashes", "its process was killed (SIGSEGV)"),
        ("is_killed", "its process was killed (SIGKILL), maybe out of memory"),
    ],
)
async def test_a_function_that_ends_its_process_has_failed(name: str, told: str, there: Stage) -> None:
    with pytest.raises(RemoteFailedError) as caught:
        await there.run(name)
    assert str(caught.value) == told


async def test_a_result_that_is_no_json_is_kept_as_words(there: Stage) -> None:
    result = await there.run("strange")
    assert (result["at"], result["nan"]) == ("2026-03-01T12:00:00Z", None)
    assert "lock" in result["lock"]
    assert await there.run("no_json_at_all") == "[[...]]"


async def test_a_result_that_is_too_large_is_cut(there: Stage) -> None:
    result = await there.run("huge")
    assert list(result) == ["truncated"]
    assert 10_000 < len(result["truncated"]) < 32_000


async def test_a_function_may_close_its_output(there: Stage) -> None:
    assert await there.run("closes_its_output") == "still here"


async def test_a_copy_that_a_function_forks_has_no_say(there: Stage) -> None:
    assert await there.run("forks") == "the original"
    assert there.progress.empty()
    assert there.said_by("copy") == []
    assert there.said_by("stderr") == ["info copy: said by the copy"]


async def test_a_function_may_have_an_event_loop_of_its_own(there: Stage) -> None:
    assert await there.run("asynchronous_inside") == "from its own loop"


async def test_a_function_that_no_other_process_can_find_runs_in_a_thread() -> None:
    def inner() -> int:
        logging.getLogger("inner").info("here")
        return os.getpid()

    async with stage(inner) as there:
        assert await there.run("inner") == os.getpid()
        assert there.said_by("inner") == ["here"]
        assert there.processes.template_pid is None


async def test_a_function_may_ask_for_a_thread(there: Stage) -> None:
    there.registry.add(describe_task(pid, name="pid_here", isolation="thread"))
    assert await there.run("pid_here") == os.getpid()


async def test_a_function_that_asks_for_a_process_gets_none_but_a_reason_when_there_is_none(
    there: Stage,
) -> None:
    await there.processes.start()
    there.registry.add(describe_task(pid, name="pid_late", isolation="process"))
    with pytest.raises(RemoteFailedError, match="it was registered after the worker had started"):
        await there.run("pid_late")


async def test_an_async_function_runs_on_the_loop_and_its_logs_are_kept(there: Stage) -> None:
    assert await there.run("on_the_loop") == os.getpid()
    assert there.said_by("loop") == ["here"]


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hungry", "starts_a_hungry_program"])
async def test_a_function_that_uses_more_memory_than_its_limit_is_killed(name: str) -> None:
    async with stage(limits=Limits(memory_bytes=64 * MEGABYTE)) as there:
        task, processes = await there.begun(name)
        with pytest.raises(RemoteFailedError) as caught:
            await task
        told = re.fullmatch(
            r"its process was killed: it used (\d+) MB of memory, its limit is 64 MB", str(caught.value)
        )
        assert told is not None, str(caught.value)
        assert int(told[1]) > 64
        assert not any(process.is_running() for process in processes)
        assert await there.run("add_up", left=1) == {"sum": 3}


@pytest.mark.parametrize("limits", [Limits(), Limits(memory_bytes=64 * MEGABYTE)])
async def test_address_space_that_is_not_used_does_not_count(limits: Limits) -> None:
    async with stage(limits=limits) as there:
        assert await there.run("reserves_much_and_uses_little") == 64 * 1024


async def test_without_limits_a_function_has_those_of_the_worker() -> None:
    async with stage() as there:
        assert await there.run("cpus") == len(os.sched_getaffinity(0))
        assert await there.run("limit_of_address_space") == list(resource.getrlimit(resource.RLIMIT_AS))


async def test_a_function_keeps_to_its_share_of_the_cpus() -> None:
    async with stage(limits=Limits(cpu_count=1)) as there:
        assert await there.run("cpus") == 1


# --- stopping -------------------------------------------------------------------------------------


async def test_a_cancelled_function_is_stopped_without_waiting_for_the_grace() -> None:
    async with stage(grace_s=30) as there:
        task, processes = await there.begun("waits")
        assert there.processes.pids() == tuple(process.pid for process in processes)
        assert await cancelled(task) < 15
        assert not any(process.is_running() for process in processes)
        assert there.processes.pids() == ()


async def test_a_function_may_clean_up_when_it_is_stopped(there: Stage, tmp_path: Path) -> None:
    file = tmp_path / "said"
    task, _ = await there.begun("cleans_up", file=str(file))
    await cancelled(task)
    assert file.read_text() == "clean"


async def test_a_function_that_ignores_the_signal_is_killed_after_the_grace() -> None:
    async with stage(grace_s=0.2) as there:
        task, processes = await there.begun("waits_and_ignores_term")
        assert 0.2 <= await cancelled(task) < 10
        assert not any(process.is_running() for process in processes)


async def test_an_impatient_second_cancel_does_not_leave_the_process_behind() -> None:
    async with stage(grace_s=0.2) as there:
        task, processes = await there.begun("waits_and_ignores_term")
        task.cancel()
        asyncio.get_running_loop().call_later(0.05, task.cancel)
        await cancelled(task)
        assert not any(process.is_running() for process in processes)


@pytest.mark.parametrize("name", ["waits_with_a_program", "waits_with_a_daemon"])
async def test_what_a_stopped_function_has_started_is_stopped_too(name: str, there: Stage) -> None:
    task, processes = await there.begun(name)
    assert len(processes) == 2
    await cancelled(task)
    assert not any(process.is_running() for process in processes)


async def test_what_a_function_has_left_running_is_stopped_when_it_returns(there: Stage) -> None:
    assert not psutil.pid_exists(await there.run("leaves_a_daemon"))


async def test_a_run_that_is_cancelled_before_its_process_is_there_leaves_none(there: Stage) -> None:
    await there.processes.start()
    for turns in range(6):
        task = asyncio.create_task(there.run("waits"))
        for _ in range(turns):
            await asyncio.sleep(0)
        await cancelled(task)
    assert psutil.Process(there.processes.template_pid).children() == []


async def test_a_hundred_functions_over_their_time_are_all_stopped_in_time(there: Stage) -> None:
    tasks = [
        asyncio.create_task(there.run(name))
        for name in ("waits", "waits_and_ignores_term")
        for _ in range(50)
    ]
    processes = [process for _ in tasks for process in await there.said()]
    assert len({process.pid for process in processes}) == 100
    began = time.monotonic()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert time.monotonic() - began < GRACE_S + 2
    assert not any(process.is_running() for process in processes)
    assert psutil.Process(there.processes.template_pid).children() == []


async def test_no_descriptor_is_left_open(there: Stage) -> None:
    await there.processes.start()
    before = psutil.Process().num_fds()
    for name in ("pid", "broken", "crashes", "leaves_at_once"):
        await asyncio.wait([asyncio.create_task(there.run(name))])
    task, _ = await there.begun("waits")
    await cancelled(task)
    assert psutil.Process().num_fds() == before


async def test_closing_ends_what_still_runs(there: Stage) -> None:
    task, processes = await there.begun("waits_with_a_program")
    await there.processes.close()
    with pytest.raises(RemoteFailedError, match="the worker has stopped"):
        await task
    assert not any(process.is_running() for process in processes)


# --- crashes --------------------------------------------------------------------------------------


async def test_when_the_template_is_killed_its_attempts_fail_and_the_next_one_works(there: Stage) -> None:
    task, processes = await there.begun("waits_with_a_program")
    pid = there.processes.template_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RemoteFailedError, match="the process that starts isolated functions has died"):
        await task
    assert orphans_alive(processes) == []
    assert await there.run("add_up", left=1) == {"sum": 3}
    assert there.processes.template_pid != pid


def orphans_alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended after a while; whether they are reaped is up to whoever adopted them."""
    _gone, there_still = psutil.wait_procs(processes, timeout=30)
    return [each for each in there_still if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


WORKER = """
import asyncio, os
from tests.integration.test_isolation import stage

async def main():
    async with stage() as there:
        names = ["waits", "waits_and_ignores_term", "waits_with_a_program", "waits_with_a_daemon"]
        tasks = [asyncio.create_task(there.run(name)) for name in names]
        pids = [process.pid for _ in names for process in await there.said()]
        if os.fork() == 0:
            os.read(0, 1)
            os._exit(0)
        print(*pids, there.processes.template_pid, flush=True)
        await asyncio.wait(tasks)

asyncio.run(main())
"""


def test_a_worker_that_is_killed_leaves_no_process_behind() -> None:
    """Not even when a copy of it, which it has forked, keeps its sockets open."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    ) as worker:
        assert worker.stdout is not None
        processes = [psutil.Process(int(pid)) for pid in worker.stdout.readline().split()]
        worker.kill()
        assert len(processes) == 7
        assert orphans_alive(processes) == []


async def test_a_template_that_dies_of_an_import_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "deadly_jobs.py"
    file.write_text("import os\nos._exit(9)\n")
    module = ModuleType("deadly_jobs")
    module.__file__ = str(file)
    exec("def work(): ...", vars(module))
    monkeypatch.setitem(sys.modules, "deadly_jobs", module)
    async with stage(module.work) as there:
        with pytest.raises(RemoteFailedError, match="ended while it imported the task modules"):
            await there.run("work")


SLOW = """def work():
    return "at last"

with open({gate!r}) as gate:
    gate.read()
"""


@asynccontextmanager
async def importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Stage, Any]]:
    """A template in the middle of an import, and the gate that holds it there until it is closed."""
    path, file = tmp_path / "gate", tmp_path / "slow_jobs.py"
    os.mkfifo(path)
    file.write_text(SLOW.format(gate=str(path)))
    module = ModuleType("slow_jobs")
    module.__file__ = str(file)
    exec("def work(): ...", vars(module))
    monkeypatch.setitem(sys.modules, "slow_jobs", module)
    async with stage(module.work) as there:
        task = asyncio.create_task(there.run("work"))
        # Opens when the template has opened its end.
        gate = await asyncio.to_thread(path.open, "w")
        yield there, (task, gate)
        gate.close()


async def test_an_attempt_that_is_shorter_than_the_imports_does_not_end_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = _of_python()
    async with importing(tmp_path, monkeypatch) as (there, (task, gate)):
        [template] = [each for each in _of_python() if each not in others]
        await cancelled(task)
        assert [each for each in _of_python() if each not in others] == [template]
        later = asyncio.create_task(there.run("work"))
        gate.close()
        assert await later == "at last"
        assert there.processes.template_pid == template.pid


async def test_closing_does_not_wait_for_imports_and_fails_who_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with importing(tmp_path, monkeypatch) as (there, (task, _gate)):
        began = time.monotonic()
        await there.processes.close()
        assert time.monotonic() - began < LEAVE_WITHIN_S / 2
        with pytest.raises(RemoteFailedError, match="the worker has stopped"):
            await task


@pytest.mark.parametrize("part", [1.0, 0.5, 0.0])
def test_a_template_whose_worker_is_gone_before_it_is_ready_leaves_in_silence(part: float) -> None:
    setup = encode({"path": sys.path, "argv": [], "limits": {}, "withheld": [], "origins": []})
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(setup[: int(len(setup) * part)])
        ours.close()
        done = subprocess.run(
            [sys.executable, "-P", "-m", "foliot.worker.isolation.template", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            capture_output=True,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (0, b"")


# --- where functions are found --------------------------------------------------------------------

SCRIPT = """
import asyncio, os
from foliot.kinds.function_target import TaskRegistry, describe_task
from foliot.worker.isolation.processes import GRACE_S, Processes
from tests.integration.test_isolation import Stage

def mine() -> list:
    return [os.getpid(), __name__]

async def main():
    registry = TaskRegistry()
    registry.add(describe_task(mine))
    processes = Processes(registry)
    pid, name = await Stage(registry, processes).run("mine")
    print(pid != os.getpid(), name)
    await processes.close()

{start}
"""
GUARDED = 'if __name__ == "__main__":\n    asyncio.run(main())'


@pytest.mark.parametrize("start", [GUARDED, "asyncio.run(main())"])
@pytest.mark.parametrize(
    ("command", "name"), [(["shop/jobs.py"], "__foliot_script__"), (["-m", "shop.jobs"], "shop.jobs")]
)
def test_a_function_of_a_script_is_found_without_running_the_script_again(
    command: list[str], name: str, start: str, tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "jobs.py").write_text(SCRIPT.format(start=start))
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, cwd=tmp_path, env=ENVIRONMENT, text=True, timeout=60
    )
    assert done.stdout == f"True {name}\n", done.stderr


TASKS = """
import logging, os
from foliot import Foliot

app = Foliot()
logging.basicConfig()

@app.task(name="{name}")
def work() -> list:
    logging.getLogger("work").warning("{name}")
    return [os.getpid(), "{name}"]
"""


async def test_functions_of_files_with_the_same_name_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from foliot.cli.process.task_modules import load_app  # not above: every template here would import it

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "twin_jobs.py").write_text(TASKS.format(name=name))
    app = load_app([str(tmp_path / name / "twin_jobs.py") for name in ("one", "two")])
    processes = Processes(app.tasks)
    there = Stage(app.tasks, processes)
    try:
        for name in ("one", "two"):
            pid, said = await there.run(name)
            assert (pid != os.getpid(), said) == (True, name)
        # Not once more by the console that they have set up for themselves.
        assert [(line.logger, line.message) for line in there.lines] == [("work", "one"), ("work", "two")]
    finally:
        await processes.close()


# --- the other event loop -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scene",
    [
        test_its_error_comes_back_with_its_traceback,
        test_what_it_logs_and_prints_are_lines_of_the_execution,
        test_a_result_that_is_too_large_is_cut,
        test_a_run_that_is_cancelled_before_its_process_is_there_leaves_none,
        test_a_hundred_functions_over_their_time_are_all_stopped_in_time,
        test_closing_ends_what_still_runs,
        test_when_the_template_is_killed_its_attempts_fail_and_the_next_one_works,
    ],
)
def test_it_is_the_same_on_uvloop(scene: Callable[[Stage], Awaitable[None]]) -> None:
    async def play() -> None:
        async with stage() as there:
            await scene(there)

    uvloop.run(play())
