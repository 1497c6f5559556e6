"""Notification rules as users write them: what is taken, and how what is not is refused."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.model.errors import InvalidError
from foliot.model.notification import NotificationRule, NotificationRuleSpec

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
JOB = UUID("01890000-0000-7000-8000-00000000000a")
WEBHOOK = {"kind": "webhook", "url": "https://hooks.example/x", "secret": "${secret:key}"}
SLACK = {"kind": "slack", "url": "https://hooks.example/x"}
RULE: dict[str, Any] = {"name": "on-call", "on": [{"kind": "failure"}], "to": SLACK}


def rule(**fields: Any) -> NotificationRule:
    spec = NotificationRuleSpec.parse({**RULE, **fields})
    times: dict[str, Any] = {"effective_ts": NOW, "created_ts": NOW, "updated_ts": NOW}
    return NotificationRule(rule_id=JOB, host_id=JOB, spec=spec, **times)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": " spaced"}, "/name"),
        ({"name": "nul\0"}, "/name"),
        ({"description": "half \ud800"}, "/description"),
        ({"unknown": 1}, "/unknown"),
        ({"enabled": "no"}, "/enabled"),
        ({"muted_until_ts": 5}, "/muted_until_ts"),
        ({"muted_until_ts": "5"}, "/muted_until_ts"),
        ({"on": []}, "/on"),
        ({"on": [{"kind": "failure"}, {"kind": "failure", "every": True}]}, "/on"),
        ({"on": [{"kind": "bored"}]}, "/on/0"),
        ({"on": [{"kind": "failure"}, {"kind": "failures_in_a_row"}]}, "/on/1/count"),
        ({"on": [{"kind": "failures_in_a_row", "count": 1}]}, "/on/0/count"),
        ({"on": [{"kind": "did_not_run"}]}, "/on/0"),
        ({"on": [{"kind": "did_not_run", "within_seconds": 5, "grace_seconds": 5}]}, "/on/0"),
        ({"on": [{"kind": "did_not_run", "within_seconds": 0}]}, "/on/0/within_seconds"),
        ({"to": {"kind": "pigeon"}}, "/to"),
        ({"to": {"kind": "webhook", "url": WEBHOOK["url"]}}, "/to/secret"),
        ({"to": {**WEBHOOK, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}, "/to/secret"),
        ({"to": {**SLACK, "secret": "${secret:key}"}}, "/to/secret"),
        ({"to": {**SLACK, "url": "ftp://hooks.example/x"}}, "/to/url"),
        ({"to": {**SLACK, "url": "https://user:pass@hooks.example/x"}}, "/to/url"),
        ({"to": {**SLACK, "url": "https://${secret:host}/x"}}, "/to/url"),
        ({"to": {**SLACK, "url": "https://hooks.example/x\r\nX-Evil: 1"}}, "/to/url"),
        ({"match": {"labels": {"team": 1}}}, "/match/labels/team"),
        ({"match": {"schedules": ["nul\0"]}}, "/match"),
        ({"muted_until_ts": "2026-03-01T12:00:00"}, "/muted_until_ts"),
    ],
)
def test_what_is_wrong_is_named_by_where_it_was_written(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidError) as told:
        NotificationRuleSpec.parse({**RULE, **fields})
    assert [each.pointer for each in told.value.problems] == [pointer]


def test_a_refusal_does_not_repeat_a_secret() -> None:
    with pytest.raises(InvalidError) as told:
        NotificationRuleSpec.parse({**RULE, "to": {**WEBHOOK, "secret": "whsec_c2VjcmV0"}})
    assert "c2VjcmV0" not in str(told.value)


def test_a_rule_without_match_is_about_all_and_else_about_those_of_which_all_holds() -> None:
    assert rule().is_about(JOB, "job", {})
    named = rule(match={"schedules": ["job", "other"]})
    assert named.is_about(JOB, "other", {})
    assert not named.is_about(JOB, "third", {})
    assert rule(match={"schedules": [str(JOB)]}).is_about(JOB, "third", {})
    labelled = rule(match={"labels": {"team": "pay", "tier": "1"}})
    assert labelled.is_about(JOB, "job", {"team": "pay", "tier": "1", "more": "x"})
    assert not labelled.is_about(JOB, "job", {"team": "pay"})
    both = rule(match={"schedules": ["job"], "labels": {"team": "pay"}})
    assert not both.is_about(JOB, "job", {})
    assert both.is_about(JOB, "job", {"team": "pay"})


def test_a_muted_rule_counts_from_the_end_of_its_muting() -> None:
    later = NOW + timedelta(hours=1)
    muted = rule(muted_until_ts=later)
    assert muted.is_muted(NOW)
    assert not muted.is_muted(later)
    assert muted.counts_from == later
    assert rule(muted_until_ts=NOW - timedelta(hours=1)).counts_from == NOW
    assert rule(enabled=False).is_muted(NOW)


def test_an_id_is_the_same_in_capitals() -> None:
    made = rule(match={"schedules": [str(JOB).upper()]})
    assert made.is_about(JOB, "job", {})
    assert rule(match={"schedules": ["JOB"]}).spec.match.schedules == ("JOB",)
