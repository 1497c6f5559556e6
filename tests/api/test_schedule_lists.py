"""Lists of schedules: filters, order, and pages that rows coming and going do not disturb."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.tables.access import host_t
from tests.api.answers import made, pointers, problem, walk
from tests.api.hosts import unique, yearly
from tests.api.served import OPERATOR_KEY, SCHEDULES, V1, Served
from tests.waiting import until

DATABASES = ("postgres",)


def names(answer: httpx2.Response) -> set[str]:
    assert answer.status_code == 200, answer.text
    return {each["name"] for each in answer.json()["items"]}


def test_an_empty_list_is_an_empty_list(operator: httpx2.Client) -> None:
    answer = operator.get(SCHEDULES, params={"name": unique()})
    assert answer.json() == {"items": [], "next_page_token": ""}


@pytest.fixture(scope="module")
def some(server: Served) -> dict[str, dict[str, Any]]:
    """Schedules that differ in everything one may filter by, in a queue of their own."""
    operator = server.by(OPERATOR_KEY)
    mark = unique("filter")
    calendar = unique("calendar")
    made(operator.post(f"{V1}/calendars", json={"name": calendar, "days": ["2030-01-01"]}))
    http = {"kind": "http", "url": "https://example.com/"}
    documents = {
        "plain": yearly(f"{mark}-plain", queue=mark),
        "high": yearly(f"{mark}-high", queue=mark, priority="high", labels={"team": "pay", "tier": "gold"}),
        "low": yearly(f"{mark}-low", queue=mark, priority="low", active=False, labels={"team": "pay"}),
        "http": yearly(f"{mark}-http", queue=mark, target=http, description="Über 100%_sure"),
        "apart": yearly(f"{mark}-apart", queue=f"{mark}.2", calendars=[calendar]),
        "failed": yearly(f"{mark}-failed", queue=mark, target={"kind": "function", "name": "fail"}),
    }
    documents["failed"]["retry"] = {"max_attempts": 1}
    found = {name: made(operator.post(SCHEDULES, json=document)) for name, document in documents.items()}
    for name, status in (("plain", "success"), ("failed", "failed")):
        location = operator.post(f"{SCHEDULES}/{found[name]['schedule_id']}/trigger").headers["location"]
        until(lambda location=location, status=status: operator.get(location).json()["status"] == status)  # type: ignore[misc]
    made(operator.post(f"{SCHEDULES}/{found['apart']['schedule_id']}/pause"), 200)
    return found


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("name={mark}-plain", {"plain"}),
        ("name={mark}-plain&name={mark}-low", {"plain", "low"}),
        ("name={mark}-none", set()),
        ("q={mark}", {"plain", "high", "low", "http", "apart", "failed"}),
        ("q={upper}-P", {"plain"}),
        ("queue={mark}&q=100%25_s", {"http"}),
        ("queue={mark}&q=100_", set()),
        ("queue={mark}", {"plain", "high", "low", "http", "failed"}),
        ("queue={mark}&queue={mark}.2", {"plain", "high", "low", "http", "apart", "failed"}),
        ("queue={mark}&active=false", {"low"}),
        ("queue={mark}&active=true", {"plain", "high", "http", "failed"}),
        ("queue={mark}&priority=high", {"high"}),
        ("queue={mark}&priority=high&priority=low", {"high", "low"}),
        ("queue={mark}&target=http", {"http"}),
        ("queue={mark}&target=http&target=function", {"plain", "high", "low", "http", "failed"}),
        ("queue={mark}&last_status=success", {"plain"}),
        ("queue={mark}&last_status=success&last_status=failed", {"plain", "failed"}),
        ("q={mark}&state=paused", {"apart"}),
        ("q={mark}&state=paused&state=inactive", {"apart", "low"}),
        ("queue={mark}&label=team:pay", {"high", "low"}),
        ("queue={mark}&label=team:pay&label=tier:gold", {"high"}),
        ("queue={mark}&managed_by=api", {"plain", "high", "low", "http", "failed"}),
        ("queue={mark}&managed_by=code", set()),
        ("calendar={calendar}", {"apart"}),
        ("queue={mark}&priority=high&active=false", set()),
    ],
)
def test_filters_narrow_the_list_and_a_repeated_one_means_any_of_its_values(
    operator: httpx2.Client, some: dict[str, dict[str, Any]], filters: str, expected: set[str]
) -> None:
    mark = some["plain"]["queue"]
    asked = filters.format(mark=mark, upper=mark.upper(), calendar=some["apart"]["calendars"][0])
    assert names(operator.get(f"{SCHEDULES}?{asked}")) == {f"{mark}-{each}" for each in expected}


@pytest.mark.parametrize(
    "wrong",
    ["priority=urgent", "active=perhaps", "target=sundial", "last_status=fine", "label=nocolon", "sort=size"],
)
def test_a_filter_with_a_value_that_there_is_not_is_refused(operator: httpx2.Client, wrong: str) -> None:
    [pointer] = pointers(problem(operator.get(f"{SCHEDULES}?{wrong}"), 422))
    assert pointer.split("/")[1] == wrong.partition("=")[0]


def test_an_unknown_filter_is_refused_and_told_the_known_ones(operator: httpx2.Client) -> None:
    document = problem(operator.get(f"{SCHEDULES}?colour=red&nmae=x"), 400)
    assert document["code"] == "unknown_parameter"
    assert pointers(document) == {"/colour": "unknown_parameter", "/nmae": "unknown_parameter"}
    assert "queue" in document["errors"][0]["hint"]


def test_a_page_has_fifty_items_and_at_most_five_hundred(server: Served, operator: httpx2.Client) -> None:
    mark, now = unique("!"), datetime.now(UTC)  # first in order of name

    async def work(connection: AsyncConnection) -> None:
        rows = [
            {"host_id": uuid4(), "host_name": f"{mark}-{number:03}", "created_ts": now}
            for number in range(501)
        ]
        await connection.execute(insert(host_t), rows)

    server.write(work)
    first = operator.get(f"{V1}/hosts").json()
    assert len(first["items"]) == 50
    assert first["next_page_token"]
    largest = operator.get(f"{V1}/hosts", params={"page_size": 500}).json()
    assert [each["name"] for each in largest["items"]] == [f"{mark}-{number:03}" for number in range(500)]
    last = operator.get(f"{V1}/hosts", params={"page_token": largest["next_page_token"]}).json()
    assert last["items"][0]["name"] == f"{mark}-500"
    for size in ("0", "501", "-1", "many", "1e2", "99999999999999999999"):
        for path in ("hosts", "schedules", "executions", "events"):
            answer = operator.get(f"{V1}/{path}", params={"page_size": size})
            assert pointers(problem(answer, 422)).keys() == {"/page_size"}


def test_fifty_schedules_make_a_page(operator: httpx2.Client) -> None:
    mark = unique("page")
    documents = [yearly(f"{mark}-{number:03}", queue=mark) for number in range(51)]
    applied = operator.post(f"{SCHEDULES}/apply", json={"schedules": documents, "source": mark})
    assert made(applied, 200)["counts"]["create"] == 51
    first = operator.get(SCHEDULES, params={"queue": mark}).json()
    assert [each["name"] for each in first["items"]] == [each["name"] for each in documents[:50]]
    second = operator.get(SCHEDULES, params={"queue": mark, "page_token": first["next_page_token"]}).json()
    assert [each["name"] for each in second["items"]] == [documents[50]["name"]]
    assert second["next_page_token"] == ""


SORTS = [
    sign + sort
    for sort in ("name", "next_run_ts", "created_ts", "updated_ts", "last_run_ts")
    for sign in "- "
]


@pytest.mark.parametrize("sort", [sort.strip() for sort in SORTS])
def test_pages_repeat_and_hide_nothing_while_rows_come_and_go(operator: httpx2.Client, sort: str) -> None:
    mark = unique("walk")

    def make(number: int, label: str) -> str:
        # Some have no next time, and sort by nothing.
        document = yearly(f"{mark}-{number:03}-{label}", queue=mark, active=number % 3 != 0)
        return str(made(operator.post(SCHEDULES, json=document))["schedule_id"])

    staying = [make(number, "stays") for number in range(0, 24, 2)]
    going = [make(number, "goes") for number in range(1, 24, 2)]
    seen: list[str] = []
    for each in walk(operator, SCHEDULES, queue=mark, sort=sort, page_size=4):
        seen.append(each["schedule_id"])
        if len(seen) % 4 == 0 and going:
            # One that was listed already, one that was not, and the one that the next page goes on behind.
            for gone in {going[0], going[-1], *(set(seen[-1:]) & set(going))}:
                going.remove(gone)
                assert operator.delete(f"{SCHEDULES}/{gone}").status_code == 204
            make(100 + len(seen), "comes")
    assert len(seen) == len(set(seen)), "nothing twice"
    assert set(staying) <= set(seen), "nothing hidden"


@pytest.mark.parametrize(
    "sort", ["name", "-name", "created_ts", "-created_ts", "next_run_ts", "-next_run_ts"]
)
def test_lists_are_in_the_order_asked_for_and_what_has_nothing_to_sort_by_comes_last(
    operator: httpx2.Client, some: dict[str, dict[str, Any]], sort: str
) -> None:
    found = list(walk(operator, SCHEDULES, queue=some["plain"]["queue"], sort=sort, page_size=2))
    values = [each[sort.removeprefix("-")] for each in found]
    known = [value for value in values if value is not None]
    assert values == [*sorted(known, reverse=sort.startswith("-")), *[None] * (len(values) - len(known))]
    assert len(found) == 5


def test_a_token_of_another_list_or_order_is_refused(operator: httpx2.Client) -> None:
    token = operator.get(SCHEDULES, params={"page_size": 1}).json()["next_page_token"]
    for params in ({"sort": "created_ts"}, {"sort": "-name"}):
        answer = operator.get(SCHEDULES, params={**params, "page_token": token})
        assert pointers(problem(answer, 422)).keys() == {"/page_token"}
    assert operator.get(f"{V1}/executions", params={"page_token": token}).status_code == 422
    assert operator.get(f"{V1}/audit", params={"page_token": token}).status_code == 422
