"""The dead man's handle: which schedules have had no success for longer than a rule has patience.

Two kinds of patience. `within_seconds` counts from the last success, or from what began later: the schedule,
the rule, or the end of a pause. `grace_seconds` counts from a due time: a success must have come since it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from foliot.model.execution import Status
from foliot.model.incident import IncidentKey, IncidentKind
from foliot.model.notification import NotificationRule
from foliot.notifying.deciding import Deciding, Rules, patience_of, silent_since
from foliot.store.sightings import Sightings, Standing


class Patience:
    def __init__(self, rules: Rules, sightings: Sightings, deciding: Deciding, now: datetime) -> None:
        self._rules = rules
        self._sightings = sightings
        self._deciding = deciding
        self._now = now

    async def judge(self, standings: Sequence[Standing]) -> None:
        """Tell the decider of those that were silent for too long."""
        asked: dict[UUID, tuple[NotificationRule, list[Standing]]] = {}
        for standing in standings:
            for rule in self._rules.about(standing.subject, self._now):
                if patience_of(rule) is not None and not self._is_told(rule, standing):
                    asked.setdefault(rule.rule_id, (rule, []))[1].append(standing)
        for rule, some in asked.values():
            patience = patience_of(rule)
            assert patience is not None
            if patience.within_seconds is not None:
                await self._judge_silence(rule, some, timedelta(seconds=patience.within_seconds))
            elif patience.grace_seconds is not None:
                await self._judge_due(rule, some, self._now - timedelta(seconds=patience.grace_seconds))

    def _is_told(self, rule: NotificationRule, standing: Standing) -> bool:
        key = IncidentKey(standing.subject.schedule_id, rule.rule_id, IncidentKind.DID_NOT_RUN)
        return not standing.subject.is_active or self._deciding.is_open(key)

    async def _judge_silence(
        self, rule: NotificationRule, standings: Sequence[Standing], within: timedelta
    ) -> None:
        # What the last run says is read already; most schedules are done with it.
        since = {
            each.subject.schedule_id: silent_since(rule, *_beginnings(each, self._now), _success_of(each))
            for each in standings
        }
        suspects = [
            each
            for each in standings
            if not each.subject.is_completed and since[each.subject.schedule_id] + within <= self._now
        ]
        if not suspects:
            return
        ids = [each.subject.schedule_id for each in suspects]
        resumed = await self._sightings.resumed(ids)
        successes = await self._sightings.successes(dict.fromkeys(ids, self._now - within))
        for each in suspects:
            key = each.subject.schedule_id
            begun = silent_since(rule, since[key], resumed.get(key), successes.get(key))
            if begun + within <= self._now:
                self._deciding.silent(rule, each.subject, begun)

    async def _judge_due(
        self, rule: NotificationRule, standings: Sequence[Standing], until: datetime
    ) -> None:
        ids = [each.subject.schedule_id for each in standings]
        due = await self._sightings.latest_due(ids, until)
        for each in standings:
            # A time that nobody has decided yet, though it is past.
            if each.next_fire_ts is not None and each.next_fire_ts <= until:
                due[each.subject.schedule_id] = each.next_fire_ts
        if not due:
            return
        resumed = await self._sightings.resumed(list(due))
        successes = await self._sightings.successes(due)
        for each in standings:
            key = each.subject.schedule_id
            if key not in due or key in successes:
                continue
            # One that was under way for longer than is looked back for.
            if (last := _success_of(each)) is not None and last >= due[key]:
                continue
            if due[key] >= silent_since(rule, *_beginnings(each, self._now), resumed.get(key)):
                self._deciding.silent(rule, each.subject, due[key], due[key])


def _beginnings(standing: Standing, now: datetime) -> tuple[datetime, ...]:
    ended = standing.paused_until_ts
    # A pause with an end that has passed.
    return (standing.created_ts,) if ended is None or ended > now else (standing.created_ts, ended)


def _success_of(standing: Standing) -> datetime | None:
    last = standing.last
    return last.ended_ts if last is not None and last.status is Status.SUCCESS else None
