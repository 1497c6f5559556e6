"""No secret of what runs here comes out in the process's log, whoever logs it and from wherever."""

import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import structlog
from tests.logging_state import logging_as_it_was

from foliot.model.redaction import hiding, running
from foliot.telemetry import logs
from foliot.telemetry.rendering import LONGEST_TEXT, Format

SECRET = "hunter2-and-more"


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    with logging_as_it_was():
        yield


@pytest.fixture(autouse=True)
def _secret() -> Iterator[None]:
    running.add([SECRET])
    yield
    running.remove([SECRET])


def told(monkeypatch: pytest.MonkeyPatch, log_format: Format = "json") -> io.StringIO:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    logs.configure(log_format, "info")
    return stderr


@pytest.fixture
def stderr(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    return told(monkeypatch)


@dataclass
class Login:
    token: str


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize(
    "value",
    [
        SECRET,
        f"Bearer {SECRET}",
        {"deep": [{"token": SECRET}]},
        {SECRET: 1},
        (SECRET, {SECRET}),
        SECRET.encode(),
        Login(SECRET),
        ValueError(SECRET),
        "x" * (LONGEST_TEXT - 5) + SECRET,
    ],
    ids=["text", "part", "nested", "name", "set", "bytes", "object", "error", "cut"],
)
def test_a_value_of_a_line_is_hidden_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, log_format: Format, value: Any
) -> None:
    stderr = told(monkeypatch, log_format)
    structlog.get_logger().warning("signed in", value=value)
    assert "signed in" in stderr.getvalue()
    assert "hunt" not in stderr.getvalue()


def test_numbers_of_which_a_secret_consists_are_hidden(stderr: io.StringIO) -> None:
    running.add(["12345678"])
    try:
        structlog.get_logger().warning("pin", pin=12345678, tries=3)
    finally:
        running.remove(["12345678"])
    line = json.loads(stderr.getvalue())
    assert (line["pin"], line["tries"]) == ("***", 3)


def test_what_is_no_secret_is_told_as_always(stderr: io.StringIO) -> None:
    structlog.get_logger().warning("x", a=1, b=[None, True, 1.5], c={"d": "e"})
    line = json.loads(stderr.getvalue())
    assert (line["a"], line["b"], line["c"]) == (1, [None, True, 1.5], {"d": "e"})


def test_a_thread_without_a_context_hides_too(stderr: io.StringIO) -> None:
    def work() -> None:
        logging.getLogger("task").warning("token %s", SECRET)
        structlog.get_logger().warning("token", token=SECRET)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [json.loads(line)["event"] for line in stderr.getvalue().splitlines()] == ["token ***", "token"]
    assert SECRET not in stderr.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_an_exception_is_told_without_it(monkeypatch: pytest.MonkeyPatch, log_format: Format) -> None:
    stderr = told(monkeypatch, log_format)
    try:
        raise ValueError(f"bad token {SECRET}")
    except ValueError:
        logging.getLogger("task").exception("failed")
        structlog.get_logger().exception("failed")
    assert stderr.getvalue().count("ValueError: bad token ***") == 2
    assert SECRET not in stderr.getvalue()


def test_a_line_whose_arguments_do_not_fit_is_told_without_them(stderr: io.StringIO) -> None:
    root = logging.getLogger()
    # Of the test's own handlers one would raise.
    root.handlers[:] = [each for each in root.handlers if each.get_name() == "foliot"]
    logging.getLogger("task").warning("attempt %d", SECRET)
    line = json.loads(stderr.getvalue())
    assert (line["event"], line["logger"]) == ("attempt %d", "task")
    assert SECRET not in stderr.getvalue()


def test_what_ends_a_thread_is_a_line_and_hides_too(stderr: io.StringIO) -> None:
    def work() -> None:
        raise ValueError(f"bad token {SECRET}")

    thread = threading.Thread(target=work, name="fetching")
    thread.start()
    thread.join()
    line = json.loads(stderr.getvalue())
    assert (line["event"], line["level"], line["thread"]) == ("thread_failed", "error", "fetching")
    assert "ValueError: bad token ***" in line["exception"]


def test_what_goes_on_after_its_attempt_hides_by_its_context(stderr: io.StringIO) -> None:
    token = hiding.set(lambda text: text.replace("left behind", "***"))
    try:
        structlog.get_logger().warning("x", token="left behind")
    finally:
        hiding.reset(token)
    assert json.loads(stderr.getvalue())["token"] == "***"
