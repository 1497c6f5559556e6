"""The operator's key that `foliot up` keeps."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from foliot.cli.operator_key import keep_key, key_file, read_key, running_file
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
    path.write_text("short\n")
    with pytest.raises(SettingError, match=r"admin-key: has 5 characters, and needs at least 32"):
        read_key(path)


def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="can't be kept in"):
        keep_key(tmp_path / "missing" / "foliot.db.admin-key")


def test_the_files_lie_beside_a_sqlite_database_and_else_in_the_folder_of_the_start() -> None:
    assert key_file("sqlite:////var/lib/foliot/foliot.db") == Path("/var/lib/foliot/foliot.db.admin-key")
    assert running_file("sqlite:///foliot.db") == Path("foliot.db.up")
    assert key_file("postgresql://ann:secret@db.example/foliot") == Path("foliot.admin-key")
