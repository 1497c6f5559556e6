"""What a task function logs becomes lines of its execution, whatever it logs."""

import logging
from typing import Any

import pytest

from foliot.kinds.target_protocol import LogLine
from foliot.kinds.task_logs import capturing, line_of


def record(message: str, *args: Any) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "task", "levelname": "INFO", "msg": message, "args": args})


def test_a_line_has_its_arguments_in_place() -> None:
    line = line_of(record("attempt %d of %d", 1, 3))
    assert (line.message, line.level, line.logger) == ("attempt 1 of 3", "info", "task")


def test_a_line_whose_arguments_do_not_fit_is_kept_with_them_behind_it() -> None:
    assert line_of(record("attempt %d", "x")).message == "attempt %d ('x',)"


def test_a_line_that_can_not_be_kept_is_not_printed_instead(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(_line: LogLine) -> None:
        raise OSError("the journal is closed")

    with capturing(broken):
        # What is printed instead quotes the code, which has no secrets.
        logging.getLogger("task").warning("token %s", "-".join(["hunter", "2"]))
    told = capsys.readouterr().err
    assert "the journal is closed" in told
    assert "hunter-2" not in told
