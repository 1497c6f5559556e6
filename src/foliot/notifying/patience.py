"""The dead man's handle: which schedules have had no success for longer than a rule has patience. Pure.

Two kinds of patience. `within_seconds` counts from the last success, or from the first time that the schedule
was to run since it began, anew or for the rule. `grace_seconds` counts from a due time: a success must have
come since it.

Most schedules are well, and how they stand says so. Only of the others is more read: see `Evidence`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from foliot.model.notification import NotificationRule, OnDidNotRun
from foliot.notifying.deciding import condition_of
from foliot.store.silence import ScheduleWindow, SilenceState, Since, Success

NEXT = timedelta(microseconds=1)
"""A success of the very instant at which patience ends is as old as that."""
GONE_THROUGH_AGAIN = timedelta(minutes=1)
"""How much of what an earlier round went through the next one does too."""


class Question(NamedTuple):
    """Whether a rule has lost its patience with a schedule that is not known to be well."""

    rule: NotificationRule
    standing: SilenceState
    began_ts: datetime
    """From when on it was to run, for the rule: as far as how it stands tells."""
    well_ts: datetime | None
    """When it is known to have been well."""
    within: timedelta | None = None
    span: ScheduleWindow | None = None
    """With `grace_seconds`: in which a time was due, if any was."""

    @property
    def schedule_id(self) -> UUID:
        return self.standing.subject.schedule_id


class Doubt(NamedTuple):
    """A question to which only a success since then would be the answer."""

    question: Question
    began_ts: datetime
    since: Since


class Silent(NamedTuple):
    """A rule has lost its patience with a schedule."""

    rule: NotificationRule
    standing: SilenceState
    opened_ts: datetime
    """There was no success since then: one that is found later ends it."""
    since_ts: datetime
    due_ts: datetime | None


@dataclass(slots=True)
class Evidence:
    """What was read of those that are not known to be well."""

    due: Mapping[ScheduleWindow, datetime] = field(default_factory=dict)
    began: Mapping[UUID, datetime] = field(default_factory=dict)
    successes: Mapping[Since, Success] = field(default_factory=dict)
    first_fires: Mapping[Since, datetime] = field(default_factory=dict)


def questions(
    asked: Iterable[tuple[NotificationRule, SilenceState]],
    now: datetime,
    *,
    known: Mapping[UUID, datetime],
    before_ts: datetime | None,
) -> list[Question]:
    """Those that remain when it is seen how the schedules stand, and when they are `known` to have been well.

    `before_ts`: times whose grace was over by then were asked about in an earlier round.
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


def doubts(asked: Iterable[Question], evidence: Evidence, now: datetime) -> list[Doubt]:
    """Those that remain when it is known what was due, and when the schedules last began anew."""
    found = []
    for question in asked:
        began = max(question.began_ts, evidence.began.get(question.schedule_id, question.began_ts))
        if question.within is not None:
            if began + question.within <= now:
                since = Since(question.schedule_id, now - question.within + NEXT)
                found.append(Doubt(question, began, since))
        elif (due := due_of(question, evidence)) is not None and due >= began:
            found.append(Doubt(question, began, Since(question.schedule_id, due)))
    return found


def judged(doubted: Iterable[Doubt], evidence: Evidence, now: datetime) -> list[Silent]:
    """Those that were silent for too long."""
    found = []
    for question, began, since in doubted:
        if since in evidence.successes:
            continue
        silent = Silent(question.rule, question.standing, since.since_ts, since.since_ts, None)
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
    """The latest time that was due, of those whose grace is over; None: all of them are known to be well."""
    if question.span is None:
        return None
    due, undecided = evidence.due.get(question.span), question.standing.next_fire_ts
    if undecided is not None and undecided <= question.span.until_ts:
        due = undecided  # nobody has decided it yet, though it is past
    return None if due is None or (question.well_ts is not None and question.well_ts >= due) else due


def has_run(doubt: Doubt) -> bool:
    """Whether it was well since it began: then it is not waited for its first time."""
    return doubt.question.well_ts is not None and doubt.question.well_ts >= doubt.began_ts


def _silent_since(question: Question, began: datetime, evidence: Evidence) -> datetime:
    if question.well_ts is not None and question.well_ts >= began:
        return question.well_ts
    first = evidence.first_fires.get(Since(question.schedule_id, began), question.standing.next_fire_ts)
    return began if first is None else max(began, first)


def _pause_end(standing: SilenceState, now: datetime) -> Iterable[datetime]:
    """Of a pause whose time is up, and that nothing has fired since."""
    if standing.paused_until_ts is not None and standing.paused_until_ts <= now:
        yield standing.paused_until_ts


def _successes(standing: SilenceState, known: Mapping[UUID, datetime]) -> Iterable[datetime]:
    last = standing.last
    if last is not None and last.is_success and last.ended_ts is not None:
        yield last.ended_ts
    if standing.subject.schedule_id in known:
        yield known[standing.subject.schedule_id]
