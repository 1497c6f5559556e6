"""The REST client of the commands: what it sends, what it repeats, and what it makes of answers."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from foliot.cli.support.api_failures import (
    ApiRefusedError,
    CommandError,
    TimedOutError,
    UnreachableError,
    ending,
    tell,
)
from foliot.cli.support.rest_client import ApiClient, path_of
from foliot.cli.support.server_choice import Server
from foliot.model.error_codes import Exit
from foliot.model.errors import InvalidError

Answer = Callable[[httpx2.Request], httpx2.Response]


class Scripted:
    """Answers requests one after the other; the last answer stays."""

    def __init__(self, *answers: httpx2.Response | Exception | Answer) -> None:
        self._answers = list(answers)
        self.requests: list[httpx2.Request] = []
        self.waits: list[float] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx2.Response) else answer(request)

    def api(self) -> ApiClient:
        server = Server("http://foliot.test:8700/base", "the-key")
        return ApiClient(server, transport=httpx2.MockTransport(self), sleep=self.waits.append)


def _answer(document: Any = None, status: int = 200, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, json={} if document is None else document, headers=named)


def _problem(status: int, **more: Any) -> httpx2.Response:
    document = {
        "type": "about:blank",
        "title": "No",
        "status": status,
        "code": "c",
        "detail": "not so",
        **more,
    }
    return httpx2.Response(status, json=document, headers={"Content-Type": "application/problem+json"})


REFUSED = httpx2.ConnectError("connection refused")


def test_the_key_goes_with_every_request_and_the_path_behind_the_servers_own() -> None:
    script = Scripted(_answer({"items": []}))
    with script.api() as api:
        api.get("schedules", {"name": ["a", "b"], "q": None, "active": True, "queue": []})
    request = script.requests[0]
    assert request.headers["Authorization"] == "Bearer the-key"
    assert str(request.url) == "http://foliot.test:8700/base/api/v1/schedules?name=a&name=b&active=true"


def test_names_in_paths_can_not_lead_elsewhere() -> None:
    assert path_of("secrets", "../keys?x#y z") == "secrets/..%2Fkeys%3Fx%23y%20z"


# --- trying again --------------------------------------------------------------------------------------


def test_a_read_is_tried_again_when_the_connection_fails_or_the_server_is_overloaded() -> None:
    script = Scripted(REFUSED, _problem(503), _answer({"name": "x"}))
    with script.api() as api:
        assert api.get("me") == {"name": "x"}
    assert len(script.requests) == 3


def test_waiting_follows_retry_after_but_not_for_ever() -> None:
    patient, endless = _problem(503), _problem(503)
    patient.headers["Retry-After"] = "2"
    endless.headers["Retry-After"] = "3600"
    script = Scripted(patient, endless, _answer())
    with script.api() as api:
        api.get("me")
    assert script.waits == [2, 5]


def test_trying_again_ends() -> None:
    script = Scripted(REFUSED)
    with script.api() as api, pytest.raises(UnreachableError, match="connection refused"):
        api.get("me")
    assert len(script.requests) == 3
    assert sum(script.waits) < 2


def test_what_is_done_once_is_tried_again_under_one_key_and_another_command_has_another() -> None:
    script = Scripted(REFUSED, httpx2.ReadError("reset"), _answer(), _answer())
    with script.api() as api:
        api.post("schedules", {"name": "x"}, is_once=True)
        api.post("schedules", {"name": "x"}, is_once=True)
    keys = [request.headers["Idempotency-Key"] for request in script.requests]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert {request.content for request in script.requests} == {b'{"name": "x"}'}


@pytest.mark.parametrize("error", [REFUSED, httpx2.ReadError("reset"), _problem(503)])
@pytest.mark.parametrize("method", ["post", "patch", "delete", "put"])
def test_what_may_have_been_done_is_not_tried_again(method: str, error: Any) -> None:
    script = Scripted(error)
    with script.api() as api, pytest.raises(CommandError) as caught:
        getattr(api, method)("things/1", *([] if method == "delete" else [{}]))
    assert caught.value.exit is Exit.UNREACHABLE
    assert len(script.requests) == 1


def test_a_broken_connection_leaves_a_change_in_doubt_and_a_refused_one_does_not() -> None:
    doubt = "it is not known whether it was done"
    with Scripted(httpx2.ReadError("reset")).api() as api, pytest.raises(UnreachableError, match=doubt):
        api.delete("schedules/1")
    with Scripted(REFUSED).api() as api, pytest.raises(UnreachableError) as caught:
        api.delete("schedules/1")
    assert doubt not in str(caught.value)


def test_no_answer_in_time_is_a_timeout_and_is_not_tried_again() -> None:
    script = Scripted(httpx2.ReadTimeout("slow"))
    with script.api() as api, pytest.raises(TimedOutError, match="60 s") as caught:
        api.get("me")
    assert caught.value.exit is Exit.TIMED_OUT
    assert len(script.requests) == 1


def test_no_connection_in_time_is_unreachable() -> None:
    with (
        Scripted(httpx2.ConnectTimeout("")).api() as api,
        pytest.raises(UnreachableError, match="within 5 s"),
    ):
        api.get("me")


# --- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, 2),
        (401, 4),
        (403, 4),
        (404, 3),
        (405, 1),
        (408, 6),
        (409, 5),
        (412, 5),
        (413, 1),
        (415, 2),
        (422, 2),
        (429, 1),
        (500, 1),
        (502, 7),
        (503, 7),
        (504, 6),
        (302, 1),
    ],
)
def test_each_answer_has_its_exit_code(status: int, code: int) -> None:
    with Scripted(_problem(status)).api() as api:
        assert ending(lambda: api.delete("things/1")) == code


def test_every_field_that_is_wrong_is_told() -> None:
    errors = [
        {"pointer": "/trigger/expression", "code": "x", "detail": "never fires", "hint": "0 2 * * *"},
        {"pointer": "/name", "code": "y", "detail": "is too long", "hint": ""},
    ]
    with Scripted(_problem(422, errors=errors)).api() as api, pytest.raises(ApiRefusedError) as caught:
        api.post("schedules", {})
    assert str(caught.value) == "trigger.expression: never fires (0 2 * * *); name: is too long"


def test_a_failure_of_the_server_names_the_request() -> None:
    with (
        Scripted(_problem(500, detail="it failed", request_id="r1")).api() as api,
        pytest.raises(ApiRefusedError, match=r"it failed \(request r1\)"),
    ):
        api.get("me")


def test_a_key_that_is_refused_says_where_keys_come_from() -> None:
    with Scripted(_problem(401)).api() as api, pytest.raises(ApiRefusedError, match="FOLIOT_KEY"):
        api.get("me")


@pytest.mark.parametrize("body", [b"<html>gateway</html>", b"", b"\xff", b'"text"', b"[1]"])
def test_whoever_does_not_answer_as_foliot_is_told_so(body: bytes) -> None:
    with (
        Scripted(httpx2.Response(502, content=body)).api() as api,
        pytest.raises(ApiRefusedError, match="502"),
    ):
        api.delete("things/1")
    with (
        Scripted(httpx2.Response(200, content=body)).api() as api,
        pytest.raises(ApiRefusedError, match="Foliot"),
    ):
        api.items("schedules")


def test_an_error_is_one_line_that_can_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert tell(CommandError("a\nb \x1b[31mred\x07 \u202e", Exit.CONFLICT)) == 5
    assert capsys.readouterr().err == "foliot: a b \\x1b[31mred\\x07 \\u202e\n"


# --- lists ---------------------------------------------------------------------------------------------


def _pages(request: httpx2.Request) -> httpx2.Response:
    """A list of 1200 numbers."""
    size, first = int(request.url.params["page_size"]), int(request.url.params.get("page_token", "0"))
    last = min(1200, first + size)
    token = str(last) if last < 1200 else ""
    return _answer({"items": [{"n": n} for n in range(first, last)], "next_page_token": token})


@pytest.mark.parametrize(
    ("limit", "count", "has_more", "requests"),
    [
        (None, 1200, False, 3),
        (50, 50, True, 1),
        (600, 600, True, 2),
        (1200, 1200, False, 3),
        (5000, 1200, False, 3),
    ],
)
def test_pages_are_followed_up_to_the_limit(
    limit: int | None, count: int, has_more: bool, requests: int
) -> None:
    script = Scripted(_pages)
    with script.api() as api:
        found = api.items("numbers", limit=limit)
    assert [item["n"] for item in found.items] == list(range(count))
    assert (found.has_more, len(script.requests)) == (has_more, requests)


# --- bodies --------------------------------------------------------------------------------------------


def test_a_patch_is_sent_as_a_merge_patch() -> None:
    script = Scripted(_answer())
    with script.api() as api:
        api.patch("schedules/1", {"active": False})
    assert script.requests[0].headers["Content-Type"] == "application/merge-patch+json"
    assert json.loads(script.requests[0].content) == {"active": False}


@pytest.mark.parametrize("body", [{"x": float("nan")}, {"x": object()}])
def test_what_is_no_json_is_refused_before_it_is_sent(body: Any) -> None:
    script = Scripted(_answer())
    with script.api() as api, pytest.raises(InvalidError):
        api.post("schedules", body)
    assert script.requests == []


def test_text_that_can_not_be_sent_is_refused() -> None:
    with Scripted(_answer()).api() as api, pytest.raises(InvalidError):
        api.get("schedules", {"name": "\udcff"})


def test_the_stream_gives_events_and_heartbeats_and_its_silence_is_a_timeout() -> None:
    text = 'retry: 1000\n\n: heartbeat\nid: 1\n\nid: 2\nevent: execution\ndata: {"a": 1}\n\n'
    stream = httpx2.Response(200, content=text.encode(), headers={"Content-Type": "text/event-stream"})
    with Scripted(stream).api() as api, api.stream({"kinds": "execution"}, silence_s=1) as events:
        told = [(event.kind, event.data) for event in events]
    assert told[-1] == ("execution", '{"a": 1}')
    assert all(data == "" for kind, data in told[:-1])

    with (
        Scripted(httpx2.ReadTimeout("")).api() as api,
        pytest.raises(TimedOutError),
        api.stream({}, silence_s=1),
    ):
        pass
    with Scripted(_problem(503)).api() as api, pytest.raises(ApiRefusedError), api.stream({}, silence_s=1):
        pass


def test_a_replay_without_a_body_is_read_from_where_it_was_made() -> None:
    headers = {"Idempotency-Replayed": "true", "Location": "/base/api/v1/schedules/7"}
    replay = httpx2.Response(201, headers=headers)
    script = Scripted(REFUSED, replay, _answer({"schedule_id": "7"}))
    with script.api() as api:
        assert api.post("schedules", {"name": "large"}, is_once=True) == {"schedule_id": "7"}
    assert str(script.requests[-1].url) == "http://foliot.test:8700/base/api/v1/schedules/7"
    assert [request.method for request in script.requests] == ["POST", "POST", "GET"]
