"""Plans of what applying files would change."""

import json
from typing import Any

import httpx2
import pytest

from foliot.cli.support.api_failures import CommandError
from foliot.cli.support.apply_plan import ApplyPlan, Request, painted
from foliot.cli.support.documents import SourcedDocument
from foliot.cli.support.rest_client import ApiClient
from foliot.cli.support.server_choice import Server


def _item(name: str, action: str, detail: str = "", *changes: tuple[str, Any, Any]) -> dict[str, Any]:
    told = [{"pointer": pointer, "before": before, "after": after} for pointer, before, after in changes]
    return {"name": name, "action": action, "detail": detail, "changes": told, "error": None}


def _plan(*items: dict[str, Any]) -> ApplyPlan:
    return ApplyPlan({"dry_run": True, "items": list(items)})


def test_a_plan_is_a_line_for_each_change_and_one_that_counts() -> None:
    plan = _plan(
        _item("nightly-report", "create"),
        _item(
            "x",
            "update",
            "",
            ("/trigger/expression", "0 2 * * *", "0 3 * * *"),
            ("/labels/team", None, "pay"),
        ),
        _item("same", "unchanged"),
        _item("y", "delete", "no longer in the files"),
        _item("z", "conflict", "is managed by code; adopt would take it over"),
    )
    assert plan.lines() == [
        "+ create nightly-report",
        '~ update x (trigger.expression: "0 2 * * *" -> "0 3 * * *", labels.team: null -> "pay")',
        "- delete y (no longer in the files)",
        "! conflict z (is managed by code; adopt would take it over)",
        "1 to create, 1 to update, 1 to delete, 1 in other hands, 1 unchanged",
    ]
    assert plan.has_changes


def test_a_plan_without_changes_says_so() -> None:
    assert _plan(_item("same", "unchanged")).lines() == ["1 unchanged"]
    assert _plan().lines() == ["nothing to do"]
    assert not _plan(_item("same", "unchanged")).has_changes
    assert _plan(_item("z", "conflict")).has_changes


def test_what_failed_is_not_told_as_done() -> None:
    failed = {**_item("a", "create"), "error": "no"}
    plan = _plan(failed, _item("b", "update"), _item("c", "delete"), _item("d", "unchanged"))
    assert plan.done() == ["updated b", "deleted c"]
    assert plan.failed == [failed]


def test_values_are_cut_and_can_not_steer_the_terminal() -> None:
    line = _plan(_item("x", "update", "", ("/description", "\x9b31m", "y" * 1000))).lines()[0]
    assert "\x9b" not in line
    assert len(line) < 300


def test_a_plan_has_no_colours_without_a_terminal() -> None:
    assert painted(["+ create x"], is_err=False) == "+ create x"


def _refusing(*errors: dict[str, str]) -> ApiClient:
    problem = {
        "code": "invalid",
        "detail": "no",
        "errors": [{"code": "c", "hint": "", **each} for each in errors],
    }
    transport = httpx2.MockTransport(lambda request: httpx2.Response(422, json=problem))
    return ApiClient(Server("http://foliot.test", "key"), transport=transport)


def test_a_problem_names_the_schedule_and_its_file() -> None:
    request = Request(
        schedules=[SourcedDocument({"name": "a"}, "x.yaml, document 1"), SourcedDocument({}, "y.yaml")]
    )
    with (
        _refusing(
            {"pointer": "/schedules/0/trigger/expression", "detail": "never fires"},
            {"pointer": "/schedules/1/name", "detail": "is required"},
            {"pointer": "/source", "detail": "is too long"},
            {"pointer": "/schedules/7/name", "detail": "is odd"},
        ) as api,
        pytest.raises(CommandError) as caught,
    ):
        request.plan(api)
    assert str(caught.value) == (
        '"a" (x.yaml, document 1): trigger.expression: never fires; y.yaml: name: is required; '
        "source: is too long; schedules.7.name: is odd"
    )
    assert caught.value.exit == 2


def test_a_problem_of_what_options_said_is_told_as_the_server_tells_it() -> None:
    with (
        _refusing({"pointer": "/schedules/0/trigger/expression", "detail": "never fires"}) as api,
        pytest.raises(CommandError, match=r"^trigger\.expression: never fires$"),
    ):
        Request(schedules=[SourcedDocument({"name": "a"})]).plan(api)


def test_only_carrying_out_is_no_dry_run() -> None:
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return httpx2.Response(200, json={"dry_run": True, "items": []})

    request = Request(
        schedules=[SourcedDocument({"name": "a"}, "x")], source="s", prunes=True, adopts=True, reason="r"
    )
    with ApiClient(Server("http://foliot.test", "key"), transport=httpx2.MockTransport(answer)) as api:
        request.plan(api)
        request.carry_out(api)
    assert [body.pop("dry_run") for body in bodies] == [True, False]
    expected = {"schedules": [{"name": "a"}], "source": "s", "prune": True, "adopt": True, "reason": "r"}
    assert bodies == [expected, expected]
