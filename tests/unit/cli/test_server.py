"""Which server commands talk to, and with which key."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from foliot.cli import main
from foliot.cli.support.api_failures import NoKeyError, UnreachableError
from foliot.cli.support.private_file import replace_private
from foliot.cli.support.server_choice import Server, find_server
from foliot.model.error_codes import Exit
from foliot.model.errors import InvalidError, SettingError

KEPT = "k" * 40
HERE = "http://127.0.0.1:8700"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("FOLIOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def up(folder: Path) -> Path:
    """A folder in which a `foliot up` runs."""
    replace_private(folder / "foliot.db.admin-key", KEPT + "\n")
    _announce(folder)
    return folder


def _announce(folder: Path, url: str = HERE, pid: int | None = None) -> Path:
    file = folder / "foliot.db.up"
    replace_private(file, json.dumps({"url": url, "pid": os.getpid() if pid is None else pid}))
    return file


def test_options_go_over_the_environment() -> None:
    environment = {"FOLIOT_URL": "http://a.test", "FOLIOT_KEY": "of a"}
    assert find_server(None, None, environment) == Server("http://a.test", "of a")
    assert find_server("http://b.test", "of b", environment) == Server("http://b.test", "of b")
    assert find_server("http://b.test", None, environment) == Server("http://b.test", "of a")


@pytest.mark.parametrize("text", ["http://a.test/", "http://a.test/api/v1", " http://a.test/api/v1/ "])
def test_an_address_may_end_as_people_copy_it(text: str) -> None:
    assert find_server(text, "key").url == "http://a.test"


@pytest.mark.parametrize(
    "text",
    [
        "a.test",
        "ftp://a.test",
        "http://",
        "http://a.test:99999",
        "http://a b.test",
        "http://u:p@a.test",
        "http://a?b",
    ],
)
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidError, match="FOLIOT_URL"):
        find_server(None, "key", {"FOLIOT_URL": text})


@pytest.mark.parametrize("key", ["two\nlines", "ünicode"])
def test_what_can_be_no_key_is_refused_and_not_said_back(key: str) -> None:
    with pytest.raises(InvalidError, match="--key") as caught:
        find_server(HERE, key)
    assert key not in str(caught.value)


def test_address_and_key_alone_are_enough_whatever_the_folder_has(folder: Path) -> None:
    (folder / "foliot.toml").write_text("this is no [toml")
    environment = {"FOLIOT_URL": HERE, "FOLIOT_KEY": "key", "FOLIOT_NONSENSE": "1"}
    assert find_server(None, None, environment) == Server(HERE, "key")


def test_without_either_it_is_the_up_of_the_folder(up: Path) -> None:
    assert find_server(None, None, {}) == Server(HERE, KEPT)


def test_the_settings_say_where_its_database_is(folder: Path) -> None:
    (folder / "data").mkdir()
    _announce(folder).rename(folder / "data" / "mine.db.up")
    replace_private(folder / "data" / "mine.db.admin-key", KEPT + "\n")
    (folder / "foliot.toml").write_text('database_url = "sqlite:///data/mine.db"\n')
    assert find_server(None, None, {}) == Server(HERE, KEPT)


def test_the_folders_key_goes_to_nobody_else(up: Path) -> None:
    with pytest.raises(NoKeyError, match="FOLIOT_KEY"):
        find_server("http://elsewhere.test", None, {})
    assert find_server(HERE, None, {}).key == KEPT


def test_an_up_that_was_killed_is_not_spoken_to(up: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    _announce(up, pid=gone.pid)
    with pytest.raises(UnreachableError, match="FOLIOT_URL"):
        find_server(None, None, {})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', '{"url": "http://a.test", "pid": "x"}'])
def test_a_torn_file_is_as_good_as_none(up: Path, text: str) -> None:
    (up / "foliot.db.up").write_text(text)
    with pytest.raises(UnreachableError, match="FOLIOT_URL"):
        find_server(None, None, {})


def test_with_nothing_at_all_it_says_what_to_set() -> None:
    with pytest.raises(UnreachableError, match="FOLIOT_URL"):
        find_server(None, None, {})
    with pytest.raises(NoKeyError, match="FOLIOT_KEY"):
        find_server(HERE, None, {})
    with pytest.raises(UnreachableError, match="FOLIOT_URL"):
        find_server(None, "key", {})


# --- keys go only where they belong ----------------------------------------------------------------


@pytest.fixture
def recorder() -> Iterator[tuple[str, list[str | None]]]:
    """A server on this machine, and the credentials that it was shown."""
    shown: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.append(self.headers.get("Authorization"))
            body = b'{"items": [], "next_page_token": ""}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", shown
        server.shutdown()
        thread.join()


def _make_writable_for_all(file: Path) -> None:
    file.chmod(0o666)


def _make_writable_for_group(file: Path) -> None:
    file.chmod(0o660)


def _make_link(file: Path) -> None:
    file.rename(file.with_suffix(".elsewhere"))
    file.symlink_to(file.with_suffix(".elsewhere"))


@pytest.mark.parametrize("spoil", [_make_writable_for_all, _make_writable_for_group, _make_link])
@pytest.mark.parametrize("name", ["FOLIOT_KEY", "FOLIOT_ADMIN_KEY"])
def test_a_hostile_file_gets_no_key(
    up: Path,
    recorder: tuple[str, list[str | None]],
    name: str,
    spoil: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url, shown = recorder
    spoil(_announce(up, url))
    monkeypatch.setenv(name, "e" * 40)
    assert main(["schedule", "list"]) == Exit.UNREACHABLE
    assert shown == []
    assert "foliot.db.up is not used" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["FOLIOT_KEY", "FOLIOT_ADMIN_KEY"])
def test_a_file_of_another_user_gets_no_key(
    up: Path, recorder: tuple[str, list[str | None]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, shown = recorder
    _announce(up, url)
    monkeypatch.setenv(name, "e" * 40)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert main(["schedule", "list"]) == Exit.UNREACHABLE
    assert shown == []


@pytest.mark.parametrize("name", ["FOLIOT_KEY", "FOLIOT_ADMIN_KEY"])
def test_a_key_of_the_environment_is_not_sent_to_the_address_in_the_file(
    up: Path, recorder: tuple[str, list[str | None]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, shown = recorder
    _announce(up, url)
    monkeypatch.setenv(name, "e" * 40)
    assert main(["schedule", "list"]) == Exit.OK
    assert shown == [f"Bearer {KEPT}"]
    (up / "foliot.db.admin-key").unlink()
    assert main(["schedule", "list"]) == Exit.AUTH
    assert len(shown) == 1
    assert main(["schedule", "list", "--key", "of the option"]) == Exit.OK
    assert shown[1:] == ["Bearer of the option"]


def test_a_key_of_the_environment_is_sent_to_the_address_of_the_environment(
    up: Path, recorder: tuple[str, list[str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, shown = recorder
    monkeypatch.setenv("FOLIOT_URL", url)
    monkeypatch.setenv("FOLIOT_KEY", "mine")
    assert main(["schedule", "list"]) == Exit.OK
    assert shown == ["Bearer mine"]


@pytest.mark.parametrize(
    "url",
    ["http://elsewhere.test", "http://192.0.2.1:8700", "http://localhost.evil.test", "http://0.0.0.0:1"],
)
def test_an_address_that_is_not_on_this_machine_gets_no_key(up: Path, url: str) -> None:
    _announce(up, url)
    with pytest.raises(UnreachableError, match="not a loopback address"):
        find_server(None, None, {})
    with pytest.raises(UnreachableError, match="not a loopback address"):
        find_server(None, "key", {})
    with pytest.raises(NoKeyError):
        find_server(url, None, {})


def test_loopback_is_all_of_it(up: Path) -> None:
    for url in ("http://127.0.0.2:8700", "http://[::1]:8700"):
        _announce(up, url)
        assert find_server(None, None, {}) == Server(url, KEPT)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_key_file_that_others_can_use_is_refused_by_name(up: Path, mode: int) -> None:
    (up / "foliot.db.admin-key").chmod(mode)
    with pytest.raises(SettingError, match=r"foliot\.db\.admin-key is not used: other users can .*chmod 600"):
        find_server(None, None, {})


def test_a_key_of_the_environment_that_is_not_used_is_named(
    up: Path,
    recorder: tuple[str, list[str | None]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _announce(up, recorder[0])
    monkeypatch.setenv("FOLIOT_KEY", "mine")
    main(["schedule", "list"])
    assert "FOLIOT_KEY is not used without FOLIOT_URL" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["schedule", "list"], ["key", "list"], ["schedule", "pause", "x"]])
def test_without_a_key_commands_end_with_4(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_URL", HERE)
    assert main(arguments) == Exit.AUTH


def test_a_wrong_setting_is_told_where_the_settings_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_SHARD", "1")
    with pytest.raises(SettingError, match="FOLIOT_SHARDS"):
        find_server(None, None, {})


def test_the_key_is_never_shown() -> None:
    assert "hidden" not in repr(Server(HERE, "hidden"))
