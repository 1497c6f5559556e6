"""A forked command is what the installed program is: to itself, and to whoever started it."""

import json
import os
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from tests import forked_cli
from tests.integration.cli_server import DEADLINE_S, FOLIOT, plain_environment
from tests.servers import free_port

LOOKING = dedent(
    """
    import json, os, random, secrets, signal, sys, threading, time

    streams = (sys.stdin, sys.stdout, sys.stderr)
    handlers = {number.name: str(signal.getsignal(number)).split(" at ")[0] for number in signal.Signals}
    seen = {
        "argv": sys.argv,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "path": sys.path,
        "streams": [(each.fileno(), each.encoding, each.errors, each.line_buffering) for each in streams],
        "stdin": sys.stdin.read(),
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "handlers": handlers,
        "threads": threading.active_count(),
        "zone": time.tzname,
        "flags": str(sys.flags),
        "customized": [*getattr(sys, "customized", [])],
    }
    differing = [os.getpid(), random.random(), secrets.token_hex()]
    with open("seen.json", "w") as file:
        json.dump([seen, differing], file)
    """
)


def _started(
    *arguments: str, env: dict[str, str], cwd: Path, given: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FOLIOT, *arguments],
        env=env,
        cwd=cwd,
        input=given,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )


@pytest.mark.parametrize(
    ("arguments", "settings", "code"),
    [
        (["version"], {}, 0),
        (["schedule", "list"], {"FOLIOT_KEY": "key"}, 7),
        (["worker", "--concurrency", "0"], {}, 2),
    ],
)
def test_it_ends_alike(arguments: list[str], settings: dict[str, str], code: int, tmp_path: Path) -> None:
    environment = plain_environment(FOLIOT_URL=f"http://127.0.0.1:{free_port()}", **settings)
    forked, started = (run(*arguments, env=environment, cwd=tmp_path) for run in (forked_cli.run, _started))
    assert forked.returncode == started.returncode == code
    assert (forked.stdout, forked.stderr) == (started.stdout, started.stderr)


def test_it_finds_itself_in_the_same_surroundings(tmp_path: Path) -> None:
    (tmp_path / "looking.py").write_text(LOOKING)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.customized = ['by PYTHONPATH']")
    environment = plain_environment(TZ="Asia/Tokyo", PYTHONPATH=f"/first:{tmp_path / 'site'}:/second")
    found = []
    for run in (forked_cli.run, _started, forked_cli.run):
        ended = run("worker", "--tasks", "looking.py", env=environment, cwd=tmp_path, given="a text")
        found.append(json.loads((tmp_path / "seen.json").read_text()))
        (tmp_path / "seen.json").unlink()
        assert ended.returncode == 2
        assert "looking.py" in ended.stderr
    assert found[0][0] == found[1][0] == found[2][0]
    assert found[0][0]["customized"] == ["by PYTHONPATH"]
    for values in zip(*(each[1] for each in found), strict=True):
        assert len(set(values)) == 3


def test_a_process_that_was_killed_says_so(tmp_path: Path) -> None:
    command = forked_cli.Command(
        *("scheduler",),
        cwd=tmp_path,
        env=plain_environment(FOLIOT_DATABASE_URL=f"postgresql://127.0.0.1:{free_port()}/none"),
        stderr=subprocess.DEVNULL,
    )
    command.kill()
    assert command.wait(timeout=DEADLINE_S) == -9
    assert command.poll() == -9
    with pytest.raises(ProcessLookupError):
        os.kill(command.pid, 0)
