"""From what was seen to what is told: the decisions themselves, without a database."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.model.execution import Status, TriggeredBy
from foliot.model.incident import Incident, Run, Subject
from foliot.model.notification import NotificationRule, NotificationRuleSpec
from foliot.notifications.decisions import ERROR_LENGTH, DecisionCollector, Rules

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOST, JOB, RULE = UUID(int=1), UUID(int=2), UUID(int=3)
SUBJECT = Subject(JOB, HOST, "job", {"team": "pay"}, False, False, True, False)
FAILURE: dict[str, Any] = {"kind": "failure"}
RECOVERY = {"kind": "recovery"}


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def rule(*on: dict[str, Any], **fields: Any) -> NotificationRule:
    document = {"name": "on-call", "on": on, "to": {"kind": "slack", "url": "https://x.example"}, **fields}
    spec = NotificationRuleSpec.parse(document)
    times: dict[str, Any] = {"effective_ts": at(-3600), "created_ts": NOW, "updated_ts": NOW}
    return NotificationRule(rule_id=RULE, host_id=HOST, spec=spec, **times)


def run(number: int, seconds: float, status: Status = Status.FAILED, attempt: int = 1) -> Run:
    ended, due = at(seconds), at(seconds - 10)
    return Run(
        UUID(int=100 + number), status, attempt, TriggeredBy.SCHEDULER, due, due, ended, due, "x" * 2000
    )


def deciding(made: NotificationRule, *incidents: Incident, now: datetime = NOW) -> DecisionCollector:
    return DecisionCollector(Rules([made]), incidents, now, "https://foliot.example")


def told(made: DecisionCollector) -> list[str]:
    return [each.type.value.removeprefix("schedule.") for each in made.notices.values()]


def test_a_failure_that_belongs_to_an_incident_that_is_over_opens_none() -> None:
    decided = deciding(rule(FAILURE, RECOVERY))
    decided.failed(SUBJECT, run(1, -60), 1)
    [opened] = decided.opened.values()
    over = opened._replace(closed_ts=at(-30))
    again = deciding(rule({**FAILURE, "every": True}), over)
    for number, seconds in ((1, -60), (2, -45), (3, -30)):
        again.failed(SUBJECT, run(number, seconds), 1)
    assert (told(again), again.opened) == ([], {})
    again.failed(SUBJECT, run(4, -29), 1)
    assert told(again) == ["failed"]


def test_what_is_tried_again_by_hand_and_fails_again_is_another_sign() -> None:
    decided = deciding(rule({**FAILURE, "every": True}))
    decided.failed(SUBJECT, run(1, -60, attempt=1), 1)
    decided.failed(SUBJECT, run(1, -30, attempt=2), 1)
    decided.failed(SUBJECT, run(1, -30, attempt=2), 1)
    assert len(decided.notices) == 2


def test_several_incidents_that_one_success_ends_are_one_recovery() -> None:
    made = rule(FAILURE, {"kind": "failures_in_a_row", "count": 2}, RECOVERY)
    decided = deciding(made)
    decided.failed(SUBJECT, run(1, -60), 1)
    decided.failed(SUBJECT, run(2, -50), 2)
    assert told(decided) == ["failed", "failing"]
    after = deciding(made, *decided.opened.values())
    for incident in decided.opened.values():
        after.succeeded(incident, SUBJECT, run(3, -10, Status.SUCCESS))
    assert told(after) == ["recovered"]
    assert set(after.closed) == set(decided.opened)


@pytest.mark.parametrize(
    ("on", "streak", "expected"),
    [
        ([RECOVERY], 1, 1),
        ([RECOVERY, {"kind": "sla_miss"}], 1, 1),
        ([RECOVERY, {"kind": "failures_in_a_row", "count": 3}], 1, 0),
        ([RECOVERY, {"kind": "did_not_run", "within_seconds": 5}], 1, 0),
    ],
)
def test_a_recovery_is_of_what_the_rule_tells_and_alone_of_any_failure(
    on: list[dict[str, Any]], streak: int, expected: int
) -> None:
    decided = deciding(rule(*on))
    decided.failed(SUBJECT, run(1, -60), streak)
    assert (told(decided), len(decided.opened)) == ([], expected)


@pytest.mark.parametrize("quiet", [SUBJECT._replace(is_paused=True), SUBJECT._replace(is_deleted=True)])
def test_of_a_paused_or_deleted_schedule_nothing_is_told_but_incidents_end(quiet: Subject) -> None:
    made = rule(FAILURE, RECOVERY, {"kind": "sla_miss"}, {"kind": "did_not_run", "within_seconds": 5})
    [incident] = _opened(made)
    decided = deciding(made, incident)
    decided.failed(quiet, run(2, -5), 9)
    decided.late(quiet, run(3, -5))
    decided.succeeded(incident, quiet, run(4, -1, Status.SUCCESS))
    assert told(decided) == []
    assert not any(each.is_open for each in decided.opened.values())
    assert set(decided.closed) == {incident.key}


def test_a_rule_that_is_gone_or_muted_ends_its_incidents_silently() -> None:
    [incident] = _opened(rule(FAILURE, RECOVERY))
    for made in (rule(FAILURE, RECOVERY, enabled=False), rule(FAILURE, RECOVERY, muted_until_ts=at(60))):
        decided = deciding(made, incident)
        decided.succeeded(incident, SUBJECT, run(4, -1, Status.SUCCESS))
        assert (told(decided), set(decided.closed)) == ([], {incident.key})


def test_a_message_says_who_what_and_where_and_cuts_the_error() -> None:
    decided = deciding(rule(FAILURE))
    decided.failed(SUBJECT, run(1, -60), 1)
    [notice] = decided.notices.values()
    assert notice.data["rule"] == {"rule_id": str(RULE), "name": "on-call"}
    assert notice.data["schedule"] == {"schedule_id": str(JOB), "name": "job", "labels": {"team": "pay"}}
    execution = notice.data["execution"]
    assert execution["ended_ts"] == "2026-03-01T11:59:00Z"
    assert len(execution["error"]) == ERROR_LENGTH
    assert notice.data["url"] == f"https://foliot.example/executions/{UUID(int=101)}"
    assert len(notice.dedupe_key) <= 255


def _opened(made: NotificationRule) -> list[Incident]:
    decided = deciding(made)
    decided.failed(SUBJECT, run(1, -60), 1)
    return list(decided.opened.values())
