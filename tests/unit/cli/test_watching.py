"""Following executions, and looking at lists again."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from foliot.cli.support import watch
from foliot.cli.support.api_failures import ApiRefusedError, TimedOutError, UnreachableError
from foliot.cli.support.options import Listing
from foliot.cli.support.output import Document, Format, View
from foliot.cli.support.rest_client import ApiClient, ListedItems
from foliot.cli.support.server_choice import Server
from foliot.cli.support.watch import follow, poll, show

EXECUTION: dict[str, Any] = {"execution_id": "e1", "schedule_id": "s1", "status": "pending"}
AWAY = httpx2.ConnectError("away")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "POLL_S", 0.0)
    monkeypatch.setattr(watch, "REFRESH_S", 0.0)


class OneExecution:
    """Tells of one execution; and by the stream of all of its schedule."""

    def __init__(self, *looks: str | Exception | int, events: list[str] | None = None) -> None:
        self._looks = list(looks)
        self._events = events
        self.asked: list[str] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/api/v1/")
        self.asked.append(path)
        if path == "stream":
            if self._events is None:
                return httpx2.Response(503, json={"detail": "too many streams"})
            assert dict(request.url.params) == {"schedule_id": "s1", "kinds": "execution"}
            return httpx2.Response(
                200, content="".join(self._events).encode(), headers={"Content-Type": "text/event-stream"}
            )
        look = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if isinstance(look, Exception):
            raise look
        if isinstance(look, int):
            return httpx2.Response(look, json={"detail": "no"})
        return httpx2.Response(200, json={**EXECUTION, "status": look})

    def api(self) -> ApiClient:
        server = Server("http://foliot.test", "key")
        return ApiClient(server, transport=httpx2.MockTransport(self), sleep=lambda _seconds: None)


def _event(execution_id: str) -> str:
    return f"event: execution\ndata: {json.dumps({'execution_id': execution_id})}\n\n"


def _follow(server: OneExecution, timeout_s: float | None = None) -> tuple[Document, list[str]]:
    seen: list[str] = []
    with server.api() as api:
        ended = follow(api, EXECUTION, lambda each: seen.append(each["status"]), timeout_s=timeout_s)
    return ended, seen


def test_it_is_looked_at_when_the_stream_tells_of_it_and_not_when_of_others() -> None:
    server = OneExecution(
        "pending", "running", "success", events=[_event("e1"), _event("e2"), _event("e2"), _event("e1")]
    )
    ended, seen = _follow(server)
    assert ended["status"] == "success"
    assert seen == ["pending", "running", "success"]
    assert server.asked == ["stream", "executions/e1", "executions/e1", "executions/e1"]


def test_one_that_ended_before_the_stream_began_is_seen_to_have() -> None:
    server = OneExecution("failed", events=[])
    assert _follow(server)[1] == ["failed"]


def test_without_a_stream_it_is_looked_at_again_and_again() -> None:
    assert (
        _follow(OneExecution("pending", "running", "retrying", "running", "cancelled"))[1][-1] == "cancelled"
    )


def test_a_server_that_is_away_for_a_while_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    away = [AWAY] * 9
    ended, _ = _follow(OneExecution("running", *away, 503, 503, 503, "success"))
    assert ended["status"] == "success"
    assert capsys.readouterr().err.count("can't be reached") == 1


def test_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PATIENCE_S", 0.0)
    with pytest.raises(UnreachableError):
        _follow(OneExecution("running", AWAY))


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusal_ends_it(status: int) -> None:
    with pytest.raises(ApiRefusedError):
        _follow(OneExecution("running", status))


@pytest.mark.parametrize("events", [None, []])
def test_the_time_that_it_may_take_ends_it(events: list[str] | None) -> None:
    with pytest.raises(TimedOutError, match="still running"):
        _follow(OneExecution("running", events=events), timeout_s=0.01)


def test_looking_ends_when_it_has_seen_it_or_in_time() -> None:
    looks: Iterator[bool] = iter([False, False, True])
    poll(lambda: next(looks))
    assert list(looks) == []
    with pytest.raises(TimedOutError, match="nothing came"):
        poll(lambda: False, timeout_s=0.01, what="nothing came")


NUMBERS = View("numbers", ("N",), lambda item, _now: (str(item["n"]),), lambda item: str(item["n"]))


def test_a_watched_list_outlives_its_server_until_it_is_interrupted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fetched: Iterator[ListedItems | BaseException] = iter(
        [
            ListedItems([{"n": 1}], False),
            UnreachableError("away"),
            ListedItems([{"n": 2}], False),
            KeyboardInterrupt(),
        ]
    )

    def fetch() -> ListedItems:
        found = next(fetched)
        if isinstance(found, BaseException):
            raise found
        return found

    show(Listing(watch=True, output=Format.NAME), fetch, NUMBERS)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("1\n2\n", "foliot: away\n")


def test_a_list_that_can_not_be_had_at_all_is_not_watched() -> None:
    def fetch() -> ListedItems:
        raise UnreachableError("away")

    with pytest.raises(UnreachableError):
        show(Listing(watch=True), fetch, NUMBERS)


def test_only_a_limit_that_nobody_set_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    show(Listing(output=Format.JSON), lambda: ListedItems([{"n": 1}], True), NUMBERS)
    assert "--all" in capsys.readouterr().err
    show(Listing(output=Format.JSON, limit=1), lambda: ListedItems([{"n": 1}], True), NUMBERS)
    assert capsys.readouterr().err == ""
