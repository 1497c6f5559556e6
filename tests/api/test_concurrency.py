"""Many at once, and the same thing again: one wins, nothing is done twice, nothing is lost."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import null, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.tables.access import idempotency_t
from foliot.model.instant import EPOCH
from tests.api.answers import made, pointers, problem
from tests.api.hosts import unique, yearly
from tests.api.served import API_ALONE, OPERATOR_KEY, SCHEDULES, V1, Served, served

AT_ONCE = 20
DAY = timedelta(hours=24)
SERVER = {"roles": API_ALONE}


@pytest.fixture(scope="module")
def second(server: Served, module_url: str) -> Iterator[Served]:
    """Another instance on the same database."""
    with served(module_url, roles=API_ALONE) as made:
        yield made


async def all_at_once(
    servers: list[Served], method: str, paths: list[str], key: str = OPERATOR_KEY, **options: Any
) -> list[httpx2.Response]:
    """Send one request per path at once, each on a connection of its own."""
    clients = [servers[number % len(servers)].async_client(key) for number in range(len(paths))]
    try:
        # Connected before, so that the requests themselves meet.
        await asyncio.gather(*(client.get("/healthz") for client in clients))
        asking = zip(clients, paths, strict=True)
        return await asyncio.gather(*(client.request(method, path, **options) for client, path in asking))
    finally:
        await asyncio.gather(*(client.aclose() for client in clients))


def statuses(answers: list[httpx2.Response]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def new_schedule(operator: httpx2.Client, **fields: Any) -> str:
    return f"{SCHEDULES}/{made(operator.post(SCHEDULES, json=yearly(**fields)))['schedule_id']}"


# --- who is first ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_of_many_editors_with_the_same_etag_one_wins(
    server: Served, second: Served, operator: httpx2.Client, method: str
) -> None:
    path = new_schedule(operator)
    etag = operator.get(path).headers["etag"]
    document = {**yearly(), "description": "mine"}
    answers = await all_at_once(
        [server, second], method, [path] * AT_ONCE, json=document, headers={"If-Match": etag}
    )
    assert statuses(answers) == {200: 1, 412: AT_ONCE - 1}
    assert operator.get(path).json()["aggregate_version"] == 2
    assert {answer.headers["etag"] for answer in answers} == {'"2"'}
    assert len(operator.get(f"{path}/versions").json()["items"]) == 2


async def test_of_many_who_make_a_schedule_of_one_name_one_does(
    server: Served, second: Served, operator: httpx2.Client
) -> None:
    document = yearly()
    answers = await all_at_once([server, second], "POST", [SCHEDULES] * AT_ONCE, json=document)
    assert statuses(answers) == {201: 1, 409: AT_ONCE - 1}
    assert len(operator.get(SCHEDULES, params={"name": document["name"]}).json()["items"]) == 1


async def test_of_many_who_make_a_host_of_one_name_one_does(server: Served, second: Served) -> None:
    body = {"name": unique("host")}
    answers = await all_at_once([server, second], "POST", [f"{V1}/hosts"] * AT_ONCE, json=body)
    assert statuses(answers) == {201: 1, 409: AT_ONCE - 1}


async def test_of_many_who_make_a_calendar_of_one_name_one_does(server: Served, second: Served) -> None:
    body = {"name": unique("calendar"), "days": ["2030-01-01"]}
    answers = await all_at_once([server, second], "POST", [f"{V1}/calendars"] * AT_ONCE, json=body)
    assert statuses(answers) == {201: 1, 409: AT_ONCE - 1}


async def test_of_many_who_delete_a_schedule_one_does(
    server: Served, second: Served, operator: httpx2.Client
) -> None:
    answers = await all_at_once([server, second], "DELETE", [new_schedule(operator)] * AT_ONCE)
    assert statuses(answers) == {204: 1, 404: AT_ONCE - 1}


async def test_of_many_who_cancel_or_retry_an_execution_one_does(
    server: Served, second: Served, operator: httpx2.Client
) -> None:
    location = operator.post(f"{new_schedule(operator)}/trigger").headers["location"]
    for act in ("cancel", "retry"):
        answers = await all_at_once([server, second], "POST", [f"{location}/{act}"] * AT_ONCE)
        assert statuses(answers) == {202: 1, 409: AT_ONCE - 1}


async def test_of_many_pauses_each_succeeds_and_one_makes_a_version(
    server: Served, second: Served, operator: httpx2.Client
) -> None:
    path = new_schedule(operator)
    answers = await all_at_once([server, second], "POST", [f"{path}/pause"] * AT_ONCE)
    assert statuses(answers) == {200: AT_ONCE}
    assert operator.get(path).json()["aggregate_version"] == 2


async def test_triggers_without_a_key_are_as_many_executions(
    server: Served, second: Served, operator: httpx2.Client
) -> None:
    path = new_schedule(operator)
    answers = await all_at_once([server, second], "POST", [f"{path}/trigger"] * AT_ONCE)
    assert statuses(answers) == {202: AT_ONCE}
    assert len({answer.headers["location"] for answer in answers}) == AT_ONCE


async def test_patches_at_once_are_all_in_the_schedule(
    server: Served, second: Served, operator: httpx2.Client
) -> None:
    path = new_schedule(operator)
    async with server.async_client(OPERATOR_KEY) as one, second.async_client(OPERATOR_KEY) as other:
        answers = await asyncio.gather(
            *(
                client.patch(path, json={"labels": {f"{number}-{client is one}": "x"}})
                for number in range(AT_ONCE)
                for client in (one, other)
            )
        )
    assert statuses(answers) == {200: 2 * AT_ONCE}
    document = operator.get(path).json()
    assert len(document["labels"]) == 2 * AT_ONCE
    assert document["aggregate_version"] == 1 + 2 * AT_ONCE


# --- the same again --------------------------------------------------------------------------------


@pytest.mark.parametrize("has_two", [False, True], ids=["one instance", "two instances"])
async def test_many_posts_under_one_key_make_one_schedule_and_get_the_same_answer(
    server: Served, second: Served, operator: httpx2.Client, has_two: bool
) -> None:
    servers = [server, second] if has_two else [server]
    document = yearly()
    answers = await all_at_once(
        servers, "POST", [SCHEDULES] * AT_ONCE, json=document, headers={"Idempotency-Key": unique()}
    )
    assert statuses(answers) == {201: AT_ONCE}
    for name in ("location", "etag", "content-type"):
        assert len({answer.headers[name] for answer in answers}) == 1
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == AT_ONCE - 1
    assert operator.get(answers[0].headers["location"]).json() == answers[0].json()
    assert len(operator.get(SCHEDULES, params={"name": document["name"]}).json()["items"]) == 1


def _post(operator: httpx2.Client, what: str) -> tuple[str, Any]:
    """A route that makes something each time it is asked, and a body for it."""
    match what:
        case "trigger":
            return f"{new_schedule(operator)}/trigger", {}
        case "backfill":
            times = {"from_ts": "2020-01-01T00:00:00Z", "to_ts": "2023-01-01T00:00:00Z"}
            return f"{new_schedule(operator)}/backfill", times
        case "host":
            return f"{V1}/hosts", {"name": unique("host")}
        case "calendar":
            return f"{V1}/calendars", {"name": unique("calendar"), "days": ["2030-01-01"]}
        case "bulk":
            schedule_id = new_schedule(operator).rpartition("/")[2]
            return f"{SCHEDULES}/bulk", {"action": "trigger", "schedule_ids": [schedule_id]}
        case _:
            return f"{SCHEDULES}/apply", {"schedules": [yearly()], "source": unique()}


@pytest.mark.parametrize("what", ["trigger", "backfill", "host", "calendar", "bulk", "apply"])
async def test_whatever_a_post_does_it_does_once_under_one_key(
    server: Served, second: Served, operator: httpx2.Client, what: str
) -> None:
    path, body = _post(operator, what)
    before = operator.get(f"{V1}/audit", params={"page_size": 1}).json()["items"]
    answers = await all_at_once(
        [server, second], "POST", [path] * AT_ONCE, json=body, headers={"Idempotency-Key": unique()}
    )
    assert len(statuses(answers)) == 1
    assert answers[0].is_success, answers[0].text
    assert len({answer.content for answer in answers}) == 1
    audited = operator.get(f"{V1}/audit", params={"page_size": 50}).json()["items"]
    assert audited[1] == before[0], "one act was written down, once"


async def test_a_key_is_shown_once_and_made_once_under_one_idempotency_key(
    server: Served, operator: httpx2.Client
) -> None:
    body = {"name": unique("key"), "role": "viewer"}
    headers = {"Idempotency-Key": unique()}
    answers = await all_at_once([server], "POST", [f"{V1}/keys"] * AT_ONCE, json=body, headers=headers)
    assert statuses(answers) == {201: 1, 409: AT_ONCE - 1}
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"already_shown"}
    [key] = [answer.json()["key"] for answer in answers if answer.status_code == 201]
    assert not any(key in answer.text for answer in answers if answer.status_code == 409)
    listed = operator.get(f"{V1}/keys", params={"page_size": 500}).json()["items"]
    assert len([each for each in listed if each["name"] == body["name"]]) == 1


def keyed(operator: httpx2.Client, path: str, body: Any, key: str) -> httpx2.Response:
    return operator.post(path, json=body, headers={"Idempotency-Key": key})


def test_another_body_under_the_same_key_is_refused(operator: httpx2.Client) -> None:
    key, document = unique(), yearly()
    first = made(keyed(operator, SCHEDULES, document, key))
    answer = keyed(operator, SCHEDULES, {**document, "description": "other"}, key)
    assert problem(answer, 422)["code"] == "idempotency_key_reused"
    assert made(keyed(operator, SCHEDULES, document, key)) == first


def test_a_key_counts_for_its_credential_and_its_route_alone(server: Served, operator: httpx2.Client) -> None:
    key = unique()
    one, other = new_schedule(operator), new_schedule(operator)
    admin = made(operator.post(f"{V1}/keys", json={"name": unique(), "role": "admin"}))["key"]
    locations = {
        keyed(operator, f"{one}/trigger", {}, key).headers["location"],
        keyed(operator, f"{other}/trigger", {}, key).headers["location"],
        keyed(server.by(admin), f"{one}/trigger", {}, key).headers["location"],
    }
    assert len(locations) == 3


def test_a_key_is_free_again_after_a_refusal(operator: httpx2.Client) -> None:
    key, document = unique(), yearly()
    problem(keyed(operator, SCHEDULES, {**document, "priority": "urgent"}, key), 422)
    problem(keyed(operator, SCHEDULES, {**document, "target": {"kind": "function", "name": "nop"}}, key), 422)
    made(keyed(operator, SCHEDULES, document, key))


def test_the_answer_is_the_same_although_the_thing_has_gone(operator: httpx2.Client) -> None:
    key, document = unique(), yearly()
    first = keyed(operator, SCHEDULES, document, key)
    assert operator.delete(first.headers["location"]).status_code == 204
    again = keyed(operator, SCHEDULES, document, key)
    assert (again.status_code, again.content) == (201, first.content)
    assert operator.get(first.headers["location"]).status_code == 404


@pytest.mark.parametrize(
    ("age", "is_kept"), [(DAY - timedelta(minutes=5), True), (DAY + timedelta(minutes=5), False)]
)
def test_an_answer_is_kept_for_24_hours(
    server: Served, operator: httpx2.Client, age: timedelta, is_kept: bool
) -> None:
    key, path = unique(), f"{new_schedule(operator)}/trigger"
    first = keyed(operator, path, {}, key).headers["location"]
    then = datetime.now(UTC) - age

    async def work(connection: AsyncConnection) -> None:
        aged = update(idempotency_t).where(idempotency_t.c.key == key)
        await connection.execute(aged.values(created_ts=then, claimed_ts=then))

    server.write(work)
    assert (keyed(operator, path, {}, key).headers["location"] == first) is is_kept


@pytest.mark.parametrize("what", ["schedule", "trigger", "backfill", "host", "calendar", "bulk", "apply"])
def test_what_was_done_by_one_who_died_before_its_answer_was_kept_is_not_done_again(
    server: Served, operator: httpx2.Client, what: str
) -> None:
    path, body = (SCHEDULES, yearly()) if what == "schedule" else _post(operator, what)
    key = unique()
    first = keyed(operator, path, body, key)
    assert first.is_success, first.text
    before = operator.get(f"{V1}/audit", params={"page_size": 1}).json()["items"]

    async def work(connection: AsyncConnection) -> None:
        lost = {"status": null(), "headers": null(), "body": null(), "claimed_ts": EPOCH}
        await connection.execute(update(idempotency_t).where(idempotency_t.c.key == key).values(**lost))

    server.write(work)
    again = keyed(operator, path, body, key)
    assert again.status_code == first.status_code, again.text
    assert again.headers.get("location") == first.headers.get("location")
    assert operator.get(f"{V1}/audit", params={"page_size": 1}).json()["items"] == before


@pytest.mark.parametrize("key", ["", "x" * 256, "ü", "a\tb"])
def test_what_is_no_key_is_refused(operator: httpx2.Client, key: str) -> None:
    headers = {b"Idempotency-Key": key.encode()}
    answer = operator.post(SCHEDULES, json=yearly(), headers=headers)
    assert pointers(problem(answer, 422)) == {"/idempotency-key": "idempotency_key"}


def test_a_key_on_another_method_means_nothing(operator: httpx2.Client) -> None:
    path, key = new_schedule(operator), {"Idempotency-Key": unique()}
    for number in range(2):
        answer = operator.patch(path, json={"description": str(number)}, headers=key)
        assert answer.json()["description"] == str(number)


async def test_a_client_that_goes_before_its_answer_finds_it_when_it_comes_back(
    server: Served, operator: httpx2.Client
) -> None:
    key, document = unique(), yearly()
    headers = {"Idempotency-Key": key}
    async with server.async_client(OPERATOR_KEY) as client:
        await client.get("/healthz")
        asking = asyncio.create_task(client.post(SCHEDULES, json=document, headers=headers))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    made(keyed(operator, SCHEDULES, document, key))
    assert len(operator.get(SCHEDULES, params={"name": document["name"]}).json()["items"]) == 1
