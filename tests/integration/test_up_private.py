"""What `foliot up` leaves on the disk and on stdout: nothing that others could use."""

import re
import stat
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import forked_cli
from tests.integration.cli_server import ADMIN_KEY, DEADLINE_S, SETTINGS, plain_environment
from tests.waiting import until

LINK = re.compile(r"http://\S+/sign-in\?token=\S+")


@contextmanager
def up(folder: Path, host: str = "127.0.0.1", umask: int = 0o022) -> Iterator[None]:
    """A `foliot up` without a terminal; its stdout is `folder/out`."""
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = forked_cli.Command(
            *("up", "--host", host),
            cwd=folder,
            env=plain_environment(**SETTINGS),
            stdout=out,
            stderr=err,
            umask=umask,
        )
    try:
        until(lambda: "Foliot is up" in _out(folder) or process.poll() is not None)
        assert process.poll() is None, (folder / "err").read_text()
        yield
    finally:
        process.kill()
        process.wait()


def _out(folder: Path) -> str:
    return (folder / "out").read_text()


def _run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """In the folder, with nothing but the settings that say where the database is."""
    environment = plain_environment(FOLIOT_DATABASE_URL=SETTINGS["FOLIOT_DATABASE_URL"])
    return forked_cli.run(*arguments, cwd=folder, env=environment, timeout=DEADLINE_S)


def _opened(link: str) -> str:
    """Where a browser ends up that opens the link."""

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    try:
        urllib.request.build_opener(NoRedirect).open(link, timeout=DEADLINE_S)
    except urllib.error.HTTPError as answer:
        with answer:
            return str(answer.headers["Location"])
    raise AssertionError("it does not lead anywhere")


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_the_database_and_its_companions_are_their_owners_alone(tmp_path: Path, umask: int) -> None:
    with up(tmp_path, umask=umask):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("foliot.db*")}
    names = {"foliot.db", "foliot.db-wal", "foliot.db-shm", "foliot.db.up", "foliot.db.admin-key"}
    assert modes == dict.fromkeys(names, 0o600)
    assert (tmp_path / "foliot.db.admin-key").read_text() == ADMIN_KEY + "\n"


def test_a_database_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "foliot.db").touch(mode=0o640)
    (tmp_path / "foliot.db").chmod(0o640)
    with up(tmp_path):
        assert stat.S_IMODE((tmp_path / "foliot.db").stat().st_mode) == 0o640


def test_the_file_behind_a_link_is_its_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "foliot.db").symlink_to(tmp_path / "data" / "real.db")
    assert _run(tmp_path, "db", "upgrade").returncode == 0
    assert stat.S_IMODE((tmp_path / "data" / "real.db").stat().st_mode) == 0o600


def test_on_loopback_the_link_is_printed_and_commands_make_others(tmp_path: Path) -> None:
    with up(tmp_path):
        [link] = LINK.findall(_out(tmp_path))
        assert "15 minutes" in _out(tmp_path)
        assert _opened(link) == "/"
        assert _opened(link) == "/?link=spent"
        made = _run(tmp_path, "sign-in")
        assert made.returncode == 0, made.stderr
        assert LINK.fullmatch(made.stdout.strip())
        assert _opened(made.stdout.strip()) == "/"
        assert _opened(made.stdout.strip()) == "/?link=spent"


def test_beyond_loopback_no_link_goes_to_a_log(tmp_path: Path) -> None:
    with up(tmp_path, host="0.0.0.0"):
        assert "foliot sign-in" in _out(tmp_path)
        assert "token=" not in _out(tmp_path) + (tmp_path / "err").read_text()
        assert _opened(_run(tmp_path, "sign-in").stdout.strip()) == "/"
