"""While a request or a task is under way, what is secret in it is hidden in every line of the process."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpcore2
import pytest

from foliot.access.address_guard import AddressGuard, HttpAllow
from foliot.access.secrets import SecretResolver
from foliot.kinds.celery_target import CeleryRunner
from foliot.kinds.http_runner import HttpRunner
from foliot.kinds.target_protocol import Assignment, AttemptFailedError, Fire
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.notification import NotificationType
from foliot.model.redaction import current_mask, running
from foliot.model.schedule import ScheduleSpec
from foliot.notifications.deliveries_sql import DueNotification
from foliot.notifications.delivery import Sender
from foliot.timing.clock import VirtualClock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "hunter2-and-more"
RESOLVER = SecretResolver(None, {"FOLIOT_SECRET_VALUE_TOK": SECRET})
GUARD = AddressGuard(HttpAllow.parse("127.0.0.0/8"))


class Listening:
    """Where requests and tasks would go: says what a line of the log would say just then."""

    can_follow = False

    def __init__(self) -> None:
        self.said: list[str] = []

    def _say(self) -> None:
        mask = current_mask()
        self.said.append(SECRET if mask is None else mask(SECRET))

    async def handle_async_request(self, _request: object) -> httpcore2.Response:
        self._say()
        raise httpcore2.ConnectError("away")

    async def send(self, _calls: object) -> None:
        self._say()


def assignment(target: dict[str, Any]) -> Assignment:
    trigger = {"kind": "delay", "seconds": 30}
    spec = ScheduleSpec.parse({"name": "one", "trigger": trigger, "target": target})
    return Assignment(Fire(UUID(int=1), UUID(int=7), "one", NOW, 1), spec, {}, DEFAULT_HOST_ID)


async def test_of_a_request_to_an_agent() -> None:
    there: Any = Listening()
    runner = HttpRunner(GUARD, RESOLVER, VirtualClock(NOW), pool=there)
    target = {"kind": "http", "url": "http://127.0.0.1/", "headers": {"X-Token": "${secret:TOK}"}}
    with pytest.raises(AttemptFailedError):
        await runner.run(assignment(target))
    assert (there.said, running.mask) == (["***"], None)


async def test_of_a_celery_task() -> None:
    there: Any = Listening()
    runner = CeleryRunner(there, RESOLVER, VirtualClock(NOW))
    await runner.run(
        assignment({"kind": "celery", "task": "shop.clean", "kwargs": {"token": "${secret:TOK}"}})
    )
    assert (there.said, running.mask) == (["***"], None)


async def test_of_a_notification() -> None:
    there: Any = Listening()
    to = {"kind": "slack", "url": "http://127.0.0.1/services/${secret:TOK}"}
    rule = {"name": "one", "on": [{"kind": "failure"}], "to": to}
    ids = UUID(int=1), DEFAULT_HOST_ID, UUID(int=2)
    due = DueNotification(*ids, NotificationType.TEST, {"type": "test", "data": {}}, 1, 0, rule)
    with pytest.raises(AttemptFailedError):
        await Sender(GUARD, there, RESOLVER).send(due, NOW)
    assert (there.said, running.mask) == (["***"], None)
