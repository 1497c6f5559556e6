"""The operator's key that `foliot up` keeps."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from foliot.cli.process.operator_key import keep_given_key, keep_key, key_file, read_key, running_file
from foliot.cli.support.private_file import replace_private
from foliot.model.errors import SettingError


def test_the_first_start_makes_a_key_that_only_its_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "foliot.db.admin-key"
    key = keep_key(path)
    assert len(key) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert keep_key(path) == key
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_many_that_start_at_once_get_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "foliot.db.admin-key"
    together = Barrier(8)

    def start(_: int) -> str:
        together.wait()
        return keep_key(path)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(start, range(8))) == {read_key(path)}


def test_a_key_that_is_too_short_is_refused_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "foliot.db.admin-key"
    replace_private(path, "short\n")
    with pytest.raises(SettingError, match=r"admin-key: has 5 characters, and needs at least 32"):
        read_key(path)


@pytest.mark.parametrize("known", [None, "another key that is long enough to be one"])
def test_a_given_key_is_kept_for_commands_in_place_of_another(tmp_path: Path, known: str | None) -> None:
    path = tmp_path / "foliot.db.admin-key"
    if known is not None:
        path.write_text(known)
    keep_given_key(path, "g" * 40)
    assert read_key(path) == "g" * 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    keep_given_key(path, "g" * 40)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_given_key_is_not_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("a text of mine")
    (tmp_path / "foliot.db.admin-key").symlink_to(victim)
    keep_given_key(tmp_path / "foliot.db.admin-key", "g" * 40)
    assert victim.read_text() == "a text of mine"
    assert read_key(tmp_path / "foliot.db.admin-key") == "g" * 40


def test_a_pipe_in_the_place_of_the_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "foliot.db.admin-key")
    with pytest.raises(SettingError, match="not a regular file"):
        read_key(tmp_path / "foliot.db.admin-key")


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    replace_private(tmp_path / "foliot.db.admin-key", "k" * 100_000)
    with pytest.raises(SettingError, match="larger than"):
        read_key(tmp_path / "foliot.db.admin-key")


def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="can't be kept in"):
        keep_key(tmp_path / "missing" / "foliot.db.admin-key")


def test_the_files_lie_beside_a_sqlite_database_and_else_in_the_folder_of_the_start() -> None:
    assert key_file("sqlite:////var/lib/foliot/foliot.db") == Path("/var/lib/foliot/foliot.db.admin-key")
    assert running_file("sqlite:///foliot.db") == Path("foliot.db.up")
    assert key_file("postgresql://ann:secret@db.example/foliot") == Path("foliot.admin-key")
