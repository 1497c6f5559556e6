"""A task's secrets do not come out in the log of the worker that runs it."""

import io
import logging
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
import structlog

from foliot.instance.store import SqlStore
from foliot.model.execution import Status
from foliot.model.redaction import running as hidden
from foliot.telemetry import logs
from tests.integration.test_worker import result_of
from tests.logging_state import logging_as_it_was

SECRET = "hunter2-and-more"


async def says_structured(token: str) -> None:
    structlog.get_logger().warning("signed in", token=token)


async def says_in_a_thread(token: str) -> None:
    thread = threading.Thread(target=lambda: logging.getLogger("task").warning("signed in %s", token))
    thread.start()
    thread.join()


def plain() -> Callable[[str], None]:
    # Not to be found by its name, so that it runs in a thread of this process.
    def says_plainly(token: str) -> None:
        logging.getLogger("task").warning("signed in %s", token)

    return says_plainly


@pytest.fixture
def stderr(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("FOLIOT_SECRET_VALUE_TOK", SECRET)
    with logging_as_it_was():
        logs.configure("json", "info")
        yield stderr


@pytest.mark.parametrize("function", [says_structured, says_in_a_thread, plain()])
async def test_whichever_way_a_task_logs_its_secret_it_is_hidden(
    store: SqlStore, database_url: str, stderr: io.StringIO, function: Callable[..., object]
) -> None:
    row = await result_of(store, database_url, function, args={"token": "${secret:TOK}"})
    assert row.status is Status.SUCCESS
    assert "signed in" in stderr.getvalue()
    assert SECRET not in stderr.getvalue()
    assert hidden.mask is None
