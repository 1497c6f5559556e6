"""Which schedules are asked about, and with which patience is lost."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.model.execution import Status, TriggeredBy
from foliot.model.incident import Run, Subject
from foliot.model.notification import NotificationRule, NotificationRuleSpec
from foliot.notifications.missed_runs import NEXT, Evidence, MissedRun, Question, doubts, judged, questions
from foliot.notifications.missed_runs_sql import SearchStart, Success, WatchedSchedule

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOST, JOB, RULE = UUID(int=1), UUID(int=2), UUID(int=3)
SUBJECT = Subject(JOB, HOST, "job", {}, False, False, True, False)
WITHIN = {"kind": "did_not_run", "within_seconds": 3600}
GRACE = {"kind": "did_not_run", "grace_seconds": 600}


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def rule(on: dict[str, Any], **fields: Any) -> NotificationRule:
    document = {"name": "on-call", "on": [on], "to": {"kind": "slack", "url": "https://x.example"}}
    times: dict[str, Any] = {"effective_ts": at(-1000), "created_ts": NOW, "updated_ts": NOW} | fields
    return NotificationRule(rule_id=RULE, host_id=HOST, spec=NotificationRuleSpec.parse(document), **times)


def run(minutes: float, status: Status, by: TriggeredBy = TriggeredBy.SCHEDULER) -> Run:
    then = at(minutes)
    return Run(UUID(int=9), status, 1, by, then, then, then, then, None)


def standing(last: Run | None = None, *, next_fire: float | None = 5, **fields: Any) -> WatchedSchedule:
    subject = SUBJECT._replace(**fields)
    return WatchedSchedule(subject, last, None if next_fire is None else at(next_fire), at(-900), None)


def ask(
    on: dict[str, Any], known: WatchedSchedule, *, before: float | None = None, well: float | None = None
) -> list[Question]:
    remembered = {} if well is None else {JOB: at(well)}
    before_ts = None if before is None else at(before)
    return questions([(rule(on), known)], NOW, known=remembered, before_ts=before_ts)


def judge(asked: list[Question], **evidence: Any) -> list[MissedRun]:
    read = Evidence(**evidence)
    return judged(doubts(asked, read, NOW), read, NOW)


@pytest.mark.parametrize(
    ("known", "well", "is_asked"),
    [
        (standing(), None, True),
        (standing(run(-59, Status.SUCCESS)), None, False),
        (standing(run(-60, Status.SUCCESS)), None, True),
        (standing(run(-5, Status.FAILED)), None, True),
        (standing(run(-5, Status.FAILED)), -30, False),
        (standing(run(-5, Status.SUCCESS, TriggeredBy.BACKFILL)), None, True),
        (standing(is_active=False), None, False),
        (standing(is_completed=True), None, False),
    ],
)
def test_only_those_are_asked_about_that_are_not_known_to_be_well(
    known: WatchedSchedule, well: float | None, is_asked: bool
) -> None:
    assert bool(ask(WITHIN, known, well=well)) is is_asked


def test_silence_counts_from_the_last_success_or_the_first_time_after_it_began() -> None:
    failing = standing(run(-5, Status.FAILED))
    [silent] = judge(ask(WITHIN, failing, well=-70))
    assert (silent.since_ts, silent.opened_ts, silent.due_ts) == (at(-70), at(-60) + NEXT, None)
    [silent] = judge(ask(WITHIN, failing), first_fires={SearchStart(JOB, at(-900)): at(-800)})
    assert silent.since_ts == at(-800)
    # It began anew within the hour, had its first time in it, or has it still to come.
    assert judge(ask(WITHIN, failing), began={JOB: at(-30)}) == []
    assert judge(ask(WITHIN, failing), first_fires={SearchStart(JOB, at(-900)): at(-30)}) == []
    assert judge(ask(WITHIN, standing(next_fire=5))) == []
    assert judge(ask(WITHIN, standing(next_fire=-61))) != []
    # One that waits for the end of a run has no next time.
    assert judge(ask(WITHIN, standing(next_fire=None))) != []


def test_a_success_that_was_found_answers_the_question() -> None:
    found = {SearchStart(JOB, at(-60) + NEXT): Success(UUID(int=9), at(-20))}
    assert judge(ask(WITHIN, standing(next_fire=-61)), successes=found) == []


def test_a_due_time_is_missed_when_its_grace_is_over_and_it_is_not_of_before_the_beginning() -> None:
    [question] = asked = ask(GRACE, standing(run(-120, Status.SUCCESS)))
    assert question.span is not None
    assert question.span[1:] == (at(-120), at(-10))
    due = {question.span: at(-15)}
    [silent] = judge(asked, due=due)
    assert silent[2:] == (at(-15), at(-15), at(-15))
    assert judge(asked) == []
    assert judge(asked, due=due, began={JOB: at(-14)}) == []
    assert judge(asked, due=due, successes={SearchStart(JOB, at(-15)): Success(UUID(int=9), at(-1))}) == []
    assert judge(ask(GRACE, standing(run(-120, Status.SUCCESS), next_fire=-11))) != []


def test_what_an_earlier_round_went_through_is_not_gone_through_again() -> None:
    [question] = ask(GRACE, standing(), before=-2)
    assert question.span is not None
    assert question.span[1:] == (at(-13), at(-10))


def test_a_rule_is_patient_from_when_it_was_told_to_be() -> None:
    made = rule(WITHIN, watching_ts=at(-59))
    assert questions([(made, standing())], NOW, known={}, before_ts=None) == []
