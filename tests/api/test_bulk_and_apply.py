"""Acting on many schedules at once, and keeping them in step with files."""

from typing import Any
from uuid import uuid4

import httpx2

from tests.api.answers import made, pointers, problem
from tests.api.hosts import unique, yearly
from tests.api.served import SCHEDULES

DATABASES = ("sqlite",)


def test_a_bulk_act_shows_first_what_it_would_do_and_keeps_to_the_number_it_was_told(
    operator: httpx2.Client,
) -> None:
    queue = unique("bulk")
    for _ in range(3):
        made(operator.post(SCHEDULES, json=yearly(queue=queue)))
    body = {"action": "pause", "filter": {"queue": [queue]}, "reason": "maintenance"}
    shown = made(operator.post(f"{SCHEDULES}/bulk", json={**body, "dry_run": True}), 200)
    assert (shown["matched"], shown["done"], len(shown["items"])) == (3, 0, 3)
    answer = operator.post(f"{SCHEDULES}/bulk", json={**body, "expected_count": 2})
    assert problem(answer, 409)["code"] == "conflict"
    listed = operator.get(SCHEDULES, params={"queue": queue}).json()["items"]
    assert [each["paused"] for each in listed] == [False] * 3
    done = made(operator.post(f"{SCHEDULES}/bulk", json={**body, "expected_count": 3}), 200)
    assert (done["matched"], done["done"], done["failed"]) == (3, 3, 0)
    listed = operator.get(SCHEDULES, params={"queue": queue}).json()["items"]
    assert {each["pause_reason"] for each in listed} == {"maintenance"}


def test_a_bulk_act_needs_either_ids_or_a_filter(operator: httpx2.Client) -> None:
    act = {"action": "delete"}
    for body in (act, {**act, "schedule_ids": [], "filter": {}}):
        problem(operator.post(f"{SCHEDULES}/bulk", json=body), 422)


def test_one_that_fails_in_a_bulk_act_stops_no_other(operator: httpx2.Client, path: str) -> None:
    own, missing = path.rpartition("/")[2], str(uuid4())
    done = made(
        operator.post(f"{SCHEDULES}/bulk", json={"action": "pause", "schedule_ids": [missing, own]}), 200
    )
    assert (done["done"], done["failed"]) == (1, 1)
    assert {each["id"]: each["code"] for each in done["items"]} == {missing: "not_found", own: None}
    assert operator.get(path).json()["paused"] is True


def test_applying_files_creates_updates_and_prunes_only_what_is_the_sources_own(
    operator: httpx2.Client,
) -> None:
    source, names_ = unique("source"), [unique("applied") for _ in range(3)]
    foreign = made(operator.post(SCHEDULES, json=yearly()))

    def apply(*documents: dict[str, Any], **options: Any) -> dict[str, Any]:
        body = {"schedules": documents, "source": source, **options}
        return made(operator.post(f"{SCHEDULES}/apply", json=body), 200)  # type: ignore[no-any-return]

    plan = apply(*map(yearly, names_), dry_run=True)
    assert (plan["dry_run"], plan["counts"]["create"]) == (True, 3)
    assert not operator.get(SCHEDULES, params={"name": names_}).json()["items"]
    assert apply(*map(yearly, names_))["counts"]["create"] == 3
    assert apply(*map(yearly, names_))["counts"]["unchanged"] == 3
    changed = apply(yearly(names_[0], priority="high"), yearly(names_[1]))
    actions = {each["name"]: each["action"] for each in changed["items"]}
    assert actions == {names_[0]: "update", names_[1]: "unchanged"}
    assert changed["items"][0]["changes"] == [{"pointer": "/priority", "before": "medium", "after": "high"}]
    pruned = apply(yearly(names_[0], priority="high"), prune=True)
    assert pruned["counts"]["delete"] == 2
    assert operator.get(f"{SCHEDULES}/{foreign['schedule_id']}").status_code == 200
    left = operator.get(SCHEDULES, params={"name": names_}).json()["items"]
    assert [(each["name"], each["managed_by"]) for each in left] == [(names_[0], "file")]


def test_applying_checks_everything_before_it_changes_anything(operator: httpx2.Client) -> None:
    good, bad = yearly(), yearly(target={"kind": "function", "name": "unheard_of"})
    answer = operator.post(f"{SCHEDULES}/apply", json={"schedules": [good, bad]})
    assert pointers(problem(answer, 422)).keys() == {"/schedules/1/target/name"}
    assert not operator.get(SCHEDULES, params={"name": good["name"]}).json()["items"]


def test_a_schedule_of_another_source_is_a_conflict_unless_it_is_adopted(operator: httpx2.Client) -> None:
    document = yearly()
    apply = f"{SCHEDULES}/apply"
    made(operator.post(apply, json={"schedules": [document], "source": "one"}), 200)
    changed = {**document, "description": "other"}
    answer = operator.post(apply, json={"schedules": [changed], "source": "two"})
    assert problem(answer, 409)["code"] == "conflict"
    body = {"schedules": [changed], "source": "two", "adopt": True}
    assert made(operator.post(apply, json=body), 200)["counts"]["update"] == 1
    [found] = operator.get(SCHEDULES, params={"name": document["name"]}).json()["items"]
    assert (found["description"], found["managed_source"]) == ("other", "two")


def test_pointers_into_files_name_what_was_written_and_not_how_it_was_read(operator: httpx2.Client) -> None:
    documents = [yearly(trigger={"kind": "cron", "expression": 5}, target={"kind": "http", "url": 5})]
    answer = operator.post(f"{SCHEDULES}/apply", json={"schedules": documents})
    expected = {"/schedules/0/trigger/expression", "/schedules/0/target/url"}
    assert pointers(problem(answer, 422)).keys() == expected
