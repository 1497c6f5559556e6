"""Dead man's switch: find schedules without a success for longer than a rule allows. Pure.

A rule sets one of two limits. `within_seconds` counts from the last success; without one, from the first fire
time since the schedule began anew or since the rule watches it. `grace_seconds` counts from a fire time: a
success must follow it.

Most schedules are healthy, and their state row shows it. More is read only for the others: see `Evidence`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from foliot.model.notification import NotificationRule, OnDidNotRun
from foliot.notifications.decisions import condition_of
from foliot.notifications.missed_runs_sql import ScheduleWindow, SearchStart, Success, WatchedSchedule

NEXT = timedelta(microseconds=1)
"""Added to the start of the allowed period: a success at exactly that instant is too old."""
GONE_THROUGH_AGAIN = timedelta(minutes=1)
"""How far a round overlaps with the round before it."""


class Question(NamedTuple):
    """A rule and a schedule that may have been silent for longer than the rule allows."""

    rule: NotificationRule
    standing: WatchedSchedule
    began_ts: datetime
    """Since when the schedule is expected to run, for this rule, as far as its state row shows."""
    well_ts: datetime | None
    """The last known success. None: none is known."""
    within: timedelta | None = None
    span: ScheduleWindow | None = None
    """With `grace_seconds`: the window to search for a fire time. None: the rule has `within_seconds`."""

    @property
    def schedule_id(self) -> UUID:
        return self.standing.subject.schedule_id


class OpenQuestion(NamedTuple):
    """A question that depends only on whether there was a success since `since`."""

    question: Question
    began_ts: datetime
    since: SearchStart


class MissedRun(NamedTuple):
    """A schedule that has been silent for longer than a rule allows."""

    rule: NotificationRule
    standing: WatchedSchedule
    opened_ts: datetime
    """There was no success since then. A success that is found later closes the incident."""
    since_ts: datetime
    due_ts: datetime | None


@dataclass(slots=True)
class Evidence:
    """Additional data that was read for schedules not known to be healthy."""

    due: Mapping[ScheduleWindow, datetime] = field(default_factory=dict)
    began: Mapping[UUID, datetime] = field(default_factory=dict)
    successes: Mapping[SearchStart, Success] = field(default_factory=dict)
    first_fires: Mapping[SearchStart, datetime] = field(default_factory=dict)


def questions(
    asked: Iterable[tuple[NotificationRule, WatchedSchedule]],
    now: datetime,
    *,
    known: Mapping[UUID, datetime],
    before_ts: datetime | None,
) -> list[Question]:
    """Return the rules and schedules that the state rows and `known` last successes do not settle.

    `before_ts`: an earlier round has checked the fire times whose grace ended by then. None: none has.
    """
    found = []
    for rule, standing in asked:
        patience = patience_of(rule)
        if patience is None or not standing.subject.is_active:
            continue
        began = max(rule.watches_from, standing.created_ts, *_pause_end(standing, now))
        well = max(_successes(standing, known), default=None)
        since = began if well is None else max(began, well)
        question = Question(rule, standing, began, well)
        if patience.within_seconds is not None:
            within = timedelta(seconds=patience.within_seconds)
            if since + within <= now and not standing.subject.is_completed:
                found.append(question._replace(within=within))
        elif patience.grace_seconds is not None:
            grace = timedelta(seconds=patience.grace_seconds)
            start = since if before_ts is None else max(since, before_ts - grace - GONE_THROUGH_AGAIN)
            if start <= now - grace:
                found.append(question._replace(span=ScheduleWindow(question.schedule_id, start, now - grace)))
    return found


def doubts(asked: Iterable[Question], evidence: Evidence, now: datetime) -> list[OpenQuestion]:
    """Return the questions that remain once fire times and last beginnings are known."""
    found = []
    for question in asked:
        began = max(question.began_ts, evidence.began.get(question.schedule_id, question.began_ts))
        if question.within is not None:
            if began + question.within <= now:
                since = SearchStart(question.schedule_id, now - question.within + NEXT)
                found.append(OpenQuestion(question, began, since))
        elif (due := due_of(question, evidence)) is not None and due >= began:
            found.append(OpenQuestion(question, began, SearchStart(question.schedule_id, due)))
    return found


def judged(doubted: Iterable[OpenQuestion], evidence: Evidence, now: datetime) -> list[MissedRun]:
    """Return the schedules that were silent for too long."""
    found = []
    for question, began, since in doubted:
        if since in evidence.successes:
            continue
        silent = MissedRun(question.rule, question.standing, since.since_ts, since.since_ts, None)
        if question.within is None:
            found.append(silent._replace(due_ts=since.since_ts))
            continue
        silent = silent._replace(since_ts=_silent_since(question, began, evidence))
        if silent.since_ts + question.within <= now:
            found.append(silent)
    return found


def patience_of(rule: NotificationRule) -> OnDidNotRun | None:
    found: OnDidNotRun | None = condition_of(rule, OnDidNotRun)
    return found


def due_of(question: Question, evidence: Evidence) -> datetime | None:
    """Return the latest fire time whose grace is over and that has no known success. None: there is none."""
    if question.span is None:
        return None
    due, undecided = evidence.due.get(question.span), question.standing.next_fire_ts
    if undecided is not None and undecided <= question.span.until_ts:
        due = undecided  # past, but no leader has decided it yet
    return None if due is None or (question.well_ts is not None and question.well_ts >= due) else due


def has_run(doubt: OpenQuestion) -> bool:
    """Whether it succeeded since it began: then its first fire time need not be read."""
    return doubt.question.well_ts is not None and doubt.question.well_ts >= doubt.began_ts


def _silent_since(question: Question, began: datetime, evidence: Evidence) -> datetime:
    if question.well_ts is not None and question.well_ts >= began:
        return question.well_ts
    first = evidence.first_fires.get(SearchStart(question.schedule_id, began), question.standing.next_fire_ts)
    return began if first is None else max(began, first)


def _pause_end(standing: WatchedSchedule, now: datetime) -> Iterable[datetime]:
    """Yield the end of an expired pause after which nothing has fired yet."""
    if standing.paused_until_ts is not None and standing.paused_until_ts <= now:
        yield standing.paused_until_ts


def _successes(standing: WatchedSchedule, known: Mapping[UUID, datetime]) -> Iterable[datetime]:
    last = standing.last
    if last is not None and last.is_success and last.ended_ts is not None:
        yield last.ended_ts
    if standing.subject.schedule_id in known:
        yield known[standing.subject.schedule_id]
