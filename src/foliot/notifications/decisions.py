"""Decide incidents and messages from observed runs and the rules. Pure: no reads, no writes.

A rule sends one message per incident. An incident opens with the first failed, late or missed run, and closes
with the schedule's next success. A run older than the end of a closed incident belongs to it and opens no new
one. No message is sent for runs before the rule existed, while the rule is muted, or for schedules that are
paused or deleted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

from foliot.model.incident import Incident, IncidentKey, IncidentKind, Notice, Run, Subject
from foliot.model.notification import (
    NotificationRule,
    NotificationType,
    OnFailure,
    OnFailuresInARow,
    OnRecovery,
    OnSlaMiss,
)

ERROR_LENGTH = 500
"""Maximum length of the error text in a message, in characters."""
MAX_DECIDED = 2000
"""Maximum number of rule checks (one rule, one schedule) per transaction. The transaction locks the shard's
row, and deciding blocks the event loop."""


class HasSubject(Protocol):
    @property
    def subject(self) -> Subject: ...


S = TypeVar("S", bound=HasSubject)


class Rules:
    """The enabled rules of all hosts, indexed by host."""

    def __init__(self, rules: Iterable[NotificationRule]) -> None:
        self.by_id = {rule.rule_id: rule for rule in rules if rule.spec.enabled}
        self._by_host: dict[UUID, list[NotificationRule]] = {}
        for rule in self.by_id.values():
            self._by_host.setdefault(rule.host_id, []).append(rule)

    def __bool__(self) -> bool:
        return bool(self.by_id)

    @property
    def hosts(self) -> frozenset[UUID]:
        return frozenset(self._by_host)

    @property
    def begin_ts(self) -> datetime:
        """The earliest instant from which any of these rules applies."""
        return min(rule.effective_ts for rule in self.by_id.values())

    def about(self, subject: Subject, now: datetime) -> list[NotificationRule]:
        """Return the rules that apply to this schedule now: none if it is paused or deleted."""
        return [] if subject.is_paused or subject.is_deleted else self.matching(subject, now)

    def matching(self, subject: Subject, now: datetime) -> list[NotificationRule]:
        """Return the unmuted rules that match this schedule, even if it is paused or deleted."""
        return [
            rule
            for rule in self._by_host.get(subject.host_id, ())
            if not rule.is_muted(now) and rule.is_about(subject.schedule_id, subject.name, subject.labels)
        ]

    def count_of(self, host_id: UUID) -> int:
        return len(self._by_host.get(host_id, ()))

    def named_by(self, host_id: UUID) -> frozenset[str] | None:
        """Return all schedules named by a host's rules. None: at least one rule matches any schedule."""
        named = [rule.spec.match.schedules for rule in self._by_host.get(host_id, ())]
        return frozenset(name for names in named for name in names) if all(named) else None

    def with_condition(self, *kinds: type) -> "Rules":
        """Return the rules that have at least one condition of these types."""
        return Rules(
            rule
            for rule in self.by_id.values()
            if any(condition_of(rule, kind) is not None for kind in kinds)
        )


def parts(found: Iterable[S], rules: Rules) -> Iterator[Sequence[S]]:
    """Split into batches of at most `MAX_DECIDED` rule checks each."""
    part: list[S] = []
    asked = 0
    for each in found:
        asks = rules.count_of(each.subject.host_id)
        if part and asked + asks > MAX_DECIDED:
            yield part
            part, asked = [], 0
        part.append(each)
        asked += asks
    if part:
        yield part


def condition_of(rule: NotificationRule, kind: type) -> Any:
    return next((each for each in rule.spec.on if isinstance(each, kind)), None)


def tells_recovery_alone(rule: NotificationRule) -> bool:
    """Whether the rule reports recoveries but no failures, so that any failure opens an incident."""
    return {each.kind for each in rule.spec.on} <= {"recovery", "sla_miss"} and any(
        isinstance(each, OnRecovery) for each in rule.spec.on
    )


class DecisionCollector:
    """Collects decisions. Earlier decisions are taken into account by later ones."""

    def __init__(
        self, rules: Rules, incidents: Iterable[Incident], now: datetime, public_url: str | None = None
    ) -> None:
        self._rules = rules
        self._incidents = {each.key: each for each in incidents}
        self._now = now
        self._public_url = public_url
        self.notices: dict[str, Notice] = {}
        self.opened: dict[IncidentKey, Incident] = {}
        self.closed: dict[IncidentKey, datetime] = {}

    def is_open(self, key: IncidentKey) -> bool:
        known = self._incidents.get(key)
        return known is not None and known.is_open

    # --- observations -----------------------------------------------------------------------------

    def failed(self, subject: Subject, run: Run, streak: int) -> None:
        """Handle an execution that failed for good. `streak`: failures in a row, including this one."""
        at = run.ended_ts or self._now
        if subject.is_paused:
            self._pass_over(subject, at, IncidentKind.FAILURE, IncidentKind.FAILURES_IN_A_ROW)
        for rule in self._rules.about(subject, self._now):
            if at < rule.counts_from:
                continue
            failure = condition_of(rule, OnFailure)
            in_a_row = condition_of(rule, OnFailuresInARow)
            if failure is not None or tells_recovery_alone(rule):
                opens = self._open(rule, subject, IncidentKind.FAILURE, at)
                if failure is not None and (
                    opens or (failure.every and not self._is_history(rule, subject, at))
                ):
                    self._tell(rule, subject, NotificationType.FAILED, _sign_of(run), run=run)
            if (
                in_a_row is not None
                and streak >= in_a_row.count
                and self._open(rule, subject, IncidentKind.FAILURES_IN_A_ROW, at)
            ):
                self._tell(
                    rule, subject, NotificationType.FAILING, _sign_of(run), run=run, failures_in_a_row=streak
                )

    def succeeded(self, incident: Incident, subject: Subject, run: Run) -> None:
        """Close an open incident after a success of its schedule, and report the recovery."""
        self.close(incident.key, run.ended_ts or self._now)
        rule = self._rules.by_id.get(incident.key.rule_id)
        if incident.key.kind is IncidentKind.SLA_MISS or rule is None:
            return
        if run.ended_ts is not None and run.ended_ts < rule.counts_from:
            return
        if condition_of(rule, OnRecovery) is not None and rule in self._rules.about(subject, self._now):
            self._tell(
                rule,
                subject,
                NotificationType.RECOVERED,
                _sign_of(run),
                run=run,
                since_ts=_written(incident.opened_ts),
            )

    def late(self, subject: Subject, run: Run, began: datetime | None = None) -> None:
        """Handle an execution that waits too long or started too late.

        Ignored if it was due before `began`, when the schedule last began anew.
        """
        if run.due_by_ts is None or (began is not None and run.due_by_ts < began):
            return
        for rule in self._rules.about(subject, self._now):
            if condition_of(rule, OnSlaMiss) is None or run.due_by_ts < rule.counts_from:
                continue
            if self._open(rule, subject, IncidentKind.SLA_MISS, run.due_by_ts):
                self._tell(
                    rule,
                    subject,
                    NotificationType.SLA_MISSED,
                    _sign_of(run),
                    run=run,
                    due_by_ts=_written(run.due_by_ts),
                )

    def silent(
        self,
        rule: NotificationRule,
        subject: Subject,
        opened: datetime,
        since: datetime,
        due: datetime | None = None,
    ) -> None:
        """Handle a schedule without a success since `opened`.

        `since`: no success is known since then. `due`: the fire time that had no success; None: the rule
        does not count from a fire time.
        """
        if self._open(rule, subject, IncidentKind.DID_NOT_RUN, opened):
            due_ts = None if due is None else _written(due)
            self._tell(
                rule,
                subject,
                NotificationType.DID_NOT_RUN,
                _written(opened),
                since_ts=_written(since),
                due_ts=due_ts,
            )

    def close(self, key: IncidentKey, at: datetime) -> None:
        """Close an incident without a message."""
        known = self._incidents.get(key)
        self.closed[key] = at
        self.opened.pop(key, None)
        if known is not None:
            self._incidents[key] = known._replace(closed_ts=at)

    # --- decisions --------------------------------------------------------------------------------

    def _open(self, rule: NotificationRule, subject: Subject, kind: IncidentKind, at: datetime) -> bool:
        key = IncidentKey(subject.schedule_id, rule.rule_id, kind)
        if self.is_open(key) or self._is_over(key, at):
            return False
        made = Incident(key, subject.host_id, at)
        self.opened[key] = self._incidents[key] = made
        self.closed.pop(key, None)
        return True

    def _pass_over(self, subject: Subject, at: datetime, *kinds: IncidentKind) -> None:
        """Record a failure during a pause as a closed incident, so that reading it again opens none."""
        for rule in self._rules.matching(subject, self._now):
            for kind in kinds:
                key = IncidentKey(subject.schedule_id, rule.rule_id, kind)
                if not self.is_open(key) and not self._is_over(key, at):
                    self.opened[key] = self._incidents[key] = Incident(key, subject.host_id, at, at)

    def _is_over(self, key: IncidentKey, at: datetime) -> bool:
        """Whether an instant belongs to an incident that has been closed since."""
        known = self._incidents.get(key)
        return known is not None and known.closed_ts is not None and at <= known.closed_ts

    def _is_history(self, rule: NotificationRule, subject: Subject, at: datetime) -> bool:
        return self._is_over(IncidentKey(subject.schedule_id, rule.rule_id, IncidentKind.FAILURE), at)

    def _tell(
        self,
        rule: NotificationRule,
        subject: Subject,
        kind: NotificationType,
        sign: str,
        run: Run | None = None,
        **more: Any,
    ) -> None:
        key = f"{kind}:{rule.rule_id}:{subject.schedule_id}:{sign}"
        data = {
            "host_id": str(subject.host_id),
            "rule": {"rule_id": str(rule.rule_id), "name": rule.spec.name},
            "schedule": {
                "schedule_id": str(subject.schedule_id),
                "name": subject.name,
                "labels": dict(subject.labels),
            },
            **({} if run is None else {"execution": _execution_data(run)}),
            **more,
        }
        if self._public_url is not None:
            place = f"schedules/{subject.schedule_id}" if run is None else f"executions/{run.execution_id}"
            data["url"] = f"{self._public_url}/{place}"
        self.notices.setdefault(
            key, Notice(subject.host_id, rule.rule_id, subject.schedule_id, kind, key, data)
        )


def _sign_of(run: Run) -> str:
    """Return a run's part of the dedupe key. It has the attempt, as a manual retry may fail again."""
    return f"{run.execution_id}:{run.attempt}"


def _execution_data(run: Run) -> Mapping[str, Any]:
    data = {
        "execution_id": str(run.execution_id),
        "status": run.status.value,
        "attempt": run.attempt,
        "triggered_by": run.triggered_by.value,
        "fire_ts": _written(run.fire_ts),
        "started_ts": None if run.started_ts is None else _written(run.started_ts),
        "ended_ts": None if run.ended_ts is None else _written(run.ended_ts),
    }
    return data if run.error is None else data | {"error": run.error[:ERROR_LENGTH]}


def _written(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
