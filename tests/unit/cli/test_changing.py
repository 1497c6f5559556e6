"""Every command that changes something takes -y and --dry-run."""

import pytest
from tests.commands import CHANGES, COMMANDS, READS


@pytest.mark.parametrize("name", CHANGES)
def test_a_command_that_changes_something_takes_yes_and_dry_run(name: str) -> None:
    assert {"-y", "--yes", "--dry-run"} <= COMMANDS[name]


def test_commands_that_only_read_have_no_dry_run() -> None:
    assert [name for name in COMMANDS if name in READS and "--dry-run" in COMMANDS[name]] == []


def test_the_commands_are_found() -> None:
    assert {"schedule pause", "secret rotate", "import crontab", "db upgrade", "sign-in"} <= set(CHANGES)
