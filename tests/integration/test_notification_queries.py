"""What notifications read and remove is found by an index, however many messages and runs there are."""

from collections.abc import Awaitable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.db.dialect import Pool
from foliot.instance.store import SqlStore
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.notification import NotificationRule, NotificationRuleSpec
from foliot.notifications.lateness_sql import Behind
from foliot.notifications.missed_runs_sql import ScheduleWindow, SearchStart
from foliot.notifications.notifications_sql import NotificationFilter
from foliot.planning.change import Author
from tests.integration.test_queries import NOW, NUMBERS, UUID_OF
from tests.plans import explain

AUTHOR = Author("somebody")
MESSAGES = 40_000
RULES = 40
SCHEDULES = 400
EXECUTIONS = 40_000
VERSIONED = 4_000
FALSE = {"postgresql": "FALSE", "sqlite": "0"}
LARGE = ("notification_t", "notification_incident_t", "execution_t", "schedule_version_t")


async def fill(store: SqlStore) -> None:
    """Messages of forty rules, nearly all delivered; runs of four hundred schedules; open incidents."""
    name = store.database.dialect.name

    def now(seconds: str) -> str:
        return NOW[name].format(seconds=seconds)

    def identity(digit: str, number: str) -> str:
        return UUID_OF[name].format(digit=digit, number=number)

    def numbers(count: int) -> str:
        return f"({NUMBERS[name].format(count=count)}) AS numbers"

    host = f"'{DEFAULT_HOST_ID}'" if name == "postgresql" else f"'{DEFAULT_HOST_ID.hex}'"
    host = f"CAST({host} AS uuid)" if name == "postgresql" else host
    rule, schedule = identity("d", f"n % {RULES}"), identity("b", f"n % {SCHEDULES}")
    status = "CASE WHEN n % 400 = 0 THEN 'pending' WHEN n % 400 = 1 THEN 'dead' ELSE 'delivered' END"
    messages = f"""
        INSERT INTO notification_t (notification_id, host_id, rule_id, schedule_id, type, dedupe_key, message,
            status, due_ts, created_ts)
        SELECT {identity("e", "n")}, {host}, {rule}, {schedule}, 'schedule.failed', 'key ' || n, '{{}}',
            {status}, {now("-n % 1000")}, {now("-n")}
        FROM {numbers(MESSAGES)}
    """
    incidents = f"""
        INSERT INTO notification_incident_t (schedule_id, rule_id, kind, host_id, opened_ts, closed_ts)
        SELECT {identity("b", f"n / {RULES}")}, {rule}, 'failure', {host}, {now("-n")},
            CASE WHEN n % 10 > 0 THEN {now("0")} END
        FROM {numbers(SCHEDULES * RULES - 1)}
    """
    executions = f"""
        INSERT INTO execution_t (execution_id, schedule_id, host_id, aggregate_version, fire_ts, status,
            triggered_by, queue, priority, attempt, ended_ts, created_ts)
        SELECT {identity("c", "n")}, {schedule}, {host}, 1, {now("-n")},
            CASE WHEN n % 3 = 0 THEN 'success' ELSE 'skipped' END, 'scheduler', 'default', 'medium', 1,
            {now("-n")}, {now("-n")}
        FROM {numbers(EXECUTIONS)}
    """
    schedules = f"""
        INSERT INTO schedule_t (schedule_id, host_id, schedule_name, description, labels, "trigger", target,
            policies, effective_ts, priority, queue, timeout_seconds, state, slot, managed_by,
            aggregate_version, created_ts, updated_ts)
        SELECT {identity("b", "n")}, {host}, 'schedule-' || n, '', '{{}}', '{{}}', '{{}}', '{{}}',
            {now("-n")}, 'high', 'default', 60, 'active', n % 1024, 'api', 150, {now("-n")}, {now("-n")}
        FROM {numbers(VERSIONED)}
    """
    versions = f"""
        INSERT INTO schedule_version_t (schedule_id, aggregate_version, host_id, "change", document, paused,
            effective_ts, created_ts)
        SELECT {identity("b", f"n % {VERSIONED}")}, 1 + n / {VERSIONED}, {host}, 'edited', '{{}}',
            {FALSE[name]}, {now("-n")}, {now("-n")}
        FROM {numbers(VERSIONED * 10)}
    """
    queue = (
        f"INSERT INTO queue_t (host_id, queue, paused) SELECT {host}, 'default', {FALSE[name]} "
        "WHERE NOT EXISTS (SELECT 1 FROM queue_t)"
    )
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        for statement in (messages, incidents, executions, schedules, versions, queue):
            await connection.exec_driver_sql(statement)
    if name == "postgresql":
        async with store.database.read(Pool.API) as connection:
            await connection.exec_driver_sql("ANALYZE")


@pytest.fixture
async def full(store: SqlStore) -> SqlStore:
    await fill(store)
    return store


async def planned(store: SqlStore, pool: Pool, act: Awaitable[Any], *indexes: str) -> Any:
    result, plan = await explain(store, pool, act)
    assert [each for each in plan.scans if each.startswith(LARGE)] == [], plan.text
    for index in indexes:
        assert index in plan.indexes, plan.text
    return result


def schedule_id(number: int) -> UUID:
    return UUID(f"b{number:031x}")


def rule_id(number: int) -> UUID:
    return UUID(f"d{number:031x}")


async def test_messages_are_listed_by_the_index_of_what_they_are_wanted_by(full: SqlStore) -> None:
    page = full.notifications.page
    for wanted, index in (
        ({"statuses": ["pending"]}, "idx_notification_pending"),
        ({"statuses": ["dead"]}, "idx_notification_dead"),
        ({"rule_ids": [rule_id(3)]}, "idx_notification_rule"),
        ({"schedule_ids": [schedule_id(3)]}, "idx_notification_schedule"),
    ):
        selection = NotificationFilter(host_id=DEFAULT_HOST_ID, **wanted)
        found = await planned(full, Pool.API, page(selection, limit=50), index)
        assert len(found) == 50


async def test_couriers_leap_from_rule_to_rule(full: SqlStore) -> None:
    claim = full.notifications.claim(limit=5, lease_s=60)
    found = await planned(full, Pool.WORK, claim, "idx_notification_turn")
    assert len(found) == 1  # of all that is pending, by the numbers above, there is one rule
    again = full.notifications.claim_of([rule_id(0)], limit=5, lease_s=60)
    assert len(await planned(full, Pool.WORK, again, "idx_notification_turn")) == 1


async def test_a_rule_is_deleted_without_going_through_the_messages_of_others(full: SqlStore) -> None:
    to = {"kind": "slack", "url": "https://hooks.example/x"}
    spec = NotificationRuleSpec.parse({"name": "one", "on": [{"kind": "failure"}], "to": to})
    made: NotificationRule = await full.notification_rules.create(
        DEFAULT_HOST_ID, spec, AUTHOR, rule_id=rule_id(0)
    )
    delete = full.notification_rules.delete(made.rule_id, DEFAULT_HOST_ID, AUTHOR)
    await planned(full, Pool.API, delete, "idx_incident_rule", "idx_notification_turn")
    pending = NotificationFilter(host_id=DEFAULT_HOST_ID, statuses=["pending"])
    assert await full.notifications.page(pending) == []


async def test_what_was_not_sent_for_too_long_is_found_by_when_it_was_due(full: SqlStore) -> None:
    before = await full.now() - timedelta(seconds=500)
    assert await planned(
        full, Pool.FIRING, full.notifications.give_up(before=before, limit=10), "idx_notification_due"
    )


async def test_silence_is_looked_for_by_the_runs_of_each_schedule(full: SqlStore) -> None:
    now, silence = await full.now(), full.sightings.silence
    ids = [schedule_id(number) for number in range(0, SCHEDULES, 4)]
    hour = timedelta(hours=1)
    since = [SearchStart(each, now - hour) for each in ids]
    assert await planned(full, Pool.FIRING, silence.successes(since, now), "uq_execution_scheduled")
    assert await planned(full, Pool.FIRING, silence.first_fires(since), "uq_execution_scheduled")
    spans = [ScheduleWindow(each, now - hour, now) for each in ids]
    assert await planned(full, Pool.FIRING, silence.latest_due(spans), "uq_execution_scheduled")
    await planned(full, Pool.FIRING, silence.versions(ids))


async def test_what_is_late_is_looked_for_by_its_queue_and_by_its_lease(full: SqlStore) -> None:
    now, lateness = await full.now(), full.sightings.lateness
    places = {(DEFAULT_HOST_ID, "default"): Behind(now - timedelta(seconds=10))}
    await planned(full, Pool.FIRING, lateness.waiting(places, now, share=20), "idx_execution_claimable")
    running = lateness.running([DEFAULT_HOST_ID], now, since=now - timedelta(seconds=10), limit=20)
    await planned(full, Pool.FIRING, running, "idx_execution_lease")
    await planned(
        full,
        Pool.FIRING,
        lateness.queues([DEFAULT_HOST_ID], now, since=now - timedelta(seconds=10)),
        "idx_execution_claimable",
    )
