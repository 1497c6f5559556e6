"""Which server commands talk to, and with which key."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from foliot.cli.failures import UnreachableError
from foliot.cli.server import Server, find_server
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
    (folder / "foliot.db.admin-key").write_text(KEPT + "\n")
    _announce(folder, os.getpid())
    return folder


def _announce(folder: Path, pid: int) -> None:
    (folder / "foliot.db.up").write_text(json.dumps({"url": HERE, "pid": pid}))


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


def test_the_settings_say_where_its_database_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "mine.db.up").write_text(json.dumps({"url": HERE, "pid": os.getpid()}))
    (folder / "foliot.toml").write_text(f'database_url = "sqlite:///data/mine.db"\nadmin_key = "{KEPT}"\n')
    assert find_server(None, None, {}) == Server(HERE, KEPT)


def test_the_folders_key_goes_to_nobody_else(up: Path) -> None:
    with pytest.raises(UnreachableError, match="FOLIOT_KEY"):
        find_server("http://elsewhere.test", None, {})
    assert find_server(HERE, None, {}).key == KEPT


def test_an_up_that_was_killed_is_not_spoken_to(up: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    _announce(up, gone.pid)
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
    with pytest.raises(UnreachableError, match="FOLIOT_KEY"):
        find_server(HERE, None, {})
    with pytest.raises(UnreachableError, match="FOLIOT_URL"):
        find_server(None, "key", {})


def test_a_wrong_setting_is_told_where_the_settings_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_SHARD", "1")
    with pytest.raises(SettingError, match="FOLIOT_SHARDS"):
        find_server(None, None, {})


def test_the_key_is_never_shown() -> None:
    assert "hidden" not in repr(Server(HERE, "hidden"))
