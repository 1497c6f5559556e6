"""Commands on a terminal: what they ask, and what only people get to see."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import termios
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests import forked_cli
from tests.integration.cli_server import DEADLINE_S, Up, running_up

YEARLY = ("--cron", "0 0 1 1 *", "--function", "greet")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running_up(tmp_path_factory.mktemp("up")) as running:
        yield running


@pytest.fixture
def name(up: Up) -> str:
    """A schedule."""
    made = f"test-{uuid4().hex[:12]}"
    assert up.run("schedule", "create", made, *YEARLY).returncode == 0
    return made


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, up: Up, *arguments: str, columns: int = 100) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self._process = forked_cli.Command(
            *arguments,
            env={**up.environment, "TERM": "xterm"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""

    def expect(self, text: str) -> None:
        while text not in self.shown:
            assert self._read(), f"it ended without {text!r}: {self.shown!r}"

    def answer(self, text: str) -> None:
        self.press(text.encode() + b"\n")

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        while self._read():
            pass
        os.close(self._master)
        return self._process.wait(timeout=DEADLINE_S)

    def _read(self) -> bool:
        try:
            if not select.select([self._master], [], [], DEADLINE_S)[0]:
                self._process.kill()
                raise AssertionError(f"it says no more after {self.shown!r}")
            data = os.read(self._master, 10_000)
        except OSError:  # the other end is closed
            return False
        self.shown += data.decode()
        return bool(data)


def _exists(up: Up, name: str) -> bool:
    return up.run("schedule", "get", name).returncode == 0


def test_deleting_asks_and_no_means_no(up: Up, name: str) -> None:
    terminal = Terminal(up, "schedule", "delete", name)
    terminal.expect(f'Delete the schedule "{name}"? [y/N]')
    terminal.answer("n")
    assert terminal.ended() == 1
    assert f"foliot: kept {name}" in terminal.shown
    assert _exists(up, name)

    terminal = Terminal(up, "schedule", "delete", name)
    terminal.expect("[y/N]")
    terminal.answer("y")
    assert terminal.ended() == 0
    assert not _exists(up, name)


def test_yes_is_not_asked_for_twice(up: Up, name: str) -> None:
    terminal = Terminal(up, "schedule", "delete", name, "-y")
    assert terminal.ended() == 0
    assert "?" not in terminal.shown
    assert not _exists(up, name)


def test_applying_shows_its_plan_and_asks(up: Up, name: str, tmp_path: Path) -> None:
    document = {
        "name": f"{name}-new",
        "trigger": {"kind": "cron", "expression": "0 0 1 1 *"},
        "target": {"kind": "function", "name": "greet"},
    }
    (tmp_path / "x.json").write_text(json.dumps(document))
    apply = ("schedule", "apply", "-f", str(tmp_path / "x.json"))
    terminal = Terminal(up, *apply)
    terminal.expect(f"+ create {name}-new")
    terminal.expect("Go ahead? [y/N]")
    terminal.answer("n")
    assert terminal.ended() == 1
    assert not _exists(up, f"{name}-new")
    terminal = Terminal(up, *apply)
    terminal.expect("Go ahead?")
    terminal.answer("y")
    assert terminal.ended() == 0
    assert _exists(up, f"{name}-new")
    # Nothing to do is nothing to ask.
    terminal = Terminal(up, *apply)
    assert terminal.ended() == 0
    assert "?" not in terminal.shown


def test_a_secret_is_typed_twice_and_never_shown(up: Up) -> None:
    terminal = Terminal(up, "secret", "set", "typed")
    # The blank comes when nothing is echoed any more; what is typed before is thrown away.
    terminal.expect("Value of typed: ")
    terminal.answer("unseen value")
    terminal.expect("Repeat for confirmation: ")
    terminal.answer("unseen value")
    assert terminal.ended() == 0
    assert "unseen" not in terminal.shown
    assert "typed" in up.run("secret", "list", "-o", "name").stdout


def test_leaving_a_question_is_no_answer(up: Up, name: str) -> None:
    terminal = Terminal(up, "schedule", "delete", name)
    terminal.expect("[y/N]")
    terminal.press(b"\x04")
    assert terminal.ended() == 130
    assert "Traceback" not in terminal.shown
    assert _exists(up, name)


def test_a_table_has_colours_and_the_width_of_the_terminal(up: Up, name: str) -> None:
    terminal = Terminal(up, "schedule", "list", "--name", name, columns=70)
    assert terminal.ended() == 0
    assert "\x1b[32mactive" in terminal.shown
    assert name in terminal.shown
    assert "…" in terminal.shown
    piped = up.run("schedule", "list", "--name", name)
    assert "…" not in piped.stdout


def test_json_has_no_colours_even_on_a_terminal(up: Up, name: str) -> None:
    terminal = Terminal(up, "schedule", "list", "--name", name, "-o", "json")
    assert terminal.ended() == 0
    assert json.loads(terminal.shown)[0]["name"] == name


def test_waiting_shows_how_far_it_is(up: Up, name: str, tmp_path: Path) -> None:
    file = tmp_path / "go"
    task = ("--cron", "0 0 1 1 *", "--function", "wait_for", "--arg", f"file={file}")
    assert up.run("schedule", "create", f"{name}-slow", *task).returncode == 0
    terminal = Terminal(up, "schedule", "trigger", f"{name}-slow", "--wait", "-o", "name")
    terminal.expect("half way")
    terminal.expect("50%")
    file.touch()
    assert terminal.ended() == 0


def test_watching_a_list_clears_the_screen_and_ends_well_with_ctrl_c(up: Up, name: str) -> None:
    terminal = Terminal(up, "schedule", "list", "--name", name, "--watch")
    terminal.expect("\x1b[2J")
    terminal.expect(name)
    terminal.interrupt()
    assert terminal.ended() == 0
