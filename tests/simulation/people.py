"""Simulated users who create, change, pause, resume, trigger, cancel and delete schedules at random."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from foliot.db.hints import Hint
from foliot.instance.store import SqlStore
from foliot.model.errors import FoliotError
from foliot.model.execution import TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.change import Author, PlannedChange, create, delete, edit, pause, resume
from tests.simulation.instances import LossyHints
from tests.simulation.network import Sender, act_as

SOMEBODY = Author("somebody")
FUNCTION = {"kind": "function", "name": "work"}
EVENT = {"kind": "event", "event_topic": "news", "event_type": "happened", "event_data": {}}
STEPS = (2, 3, 5, 6, 10)
"""Seconds between fire times. They divide a minute, so that cron can express them too."""


@dataclass(slots=True)
class Known:
    """What the users know about a schedule."""

    schedule: Schedule
    is_touched: bool = False
    """True: its fire times may differ from those it was created with."""
    is_deleted: bool = False


@dataclass(slots=True)
class People:
    sender: Sender
    store: SqlStore
    hints: LossyHints
    choose: random.Random
    now: Callable[[], datetime]
    tell: Callable[[str], None]
    known: dict[UUID, Known] = field(default_factory=dict)
    _number: int = 0

    # --- definitions ------------------------------------------------------------------------------

    def definition(self) -> dict[str, Any]:
        choose = self.choose
        self._number += 1
        is_event = choose.random() < 0.2
        misfire = choose.choice(
            [
                {"policy": "fire_once"},
                {"policy": "fire_once", "grace_seconds": 5},
                {"policy": "fire_all", "max_catchup": 3},
                {"policy": "skip"},
            ]
        )
        overlap = {
            "policy": choose.choice(["skip", "queue", "cancel_running", "allow"]),
            "max_instances": choose.choice([1, 1, 2]),
        }
        return {
            "name": f"schedule-{self._number}",
            "trigger": self.trigger(may_be_delay=not is_event),
            "target": EVENT if is_event else FUNCTION,
            "misfire": misfire,
            "overlap": overlap,
            "jitter_seconds": choose.choice([0, 0, 1]),
            "priority": choose.choice(["high", "medium", "low"]),
            "timeout_seconds": choose.choice([3, 8]),
            "retry": {"max_attempts": choose.choice([1, 2, 3]), "initial_delay_seconds": 1},
            "delivery": choose.choice(["at_least_once", "at_least_once", "at_most_once"]),
            "max_runs": choose.choice([None, None, None, 3]),
        }

    def trigger(self, *, may_be_delay: bool) -> dict[str, Any]:
        step = self.choose.choice(STEPS)
        kinds = ["interval", "interval", "cron", "cron", "once"] + ["delay"] * may_be_delay
        match self.choose.choice(kinds):
            case "interval":
                return {"kind": "interval", "frequency_unit": "SECONDS", "frequency_time": step}
            case "cron":
                # Only in the hour of the histories: the verifier would take longest for a whole day of
                # seconds.
                return {"kind": "cron", "expression": f"*/{step} * 12 * * *"}
            case "once":
                at = self.now() + timedelta(seconds=self.choose.choice([2, 9, 25]))
                return {"kind": "once", "at": at.isoformat()}
        return {"kind": "delay", "seconds": step}

    # --- acts -------------------------------------------------------------------------------------

    async def act(self) -> None:
        """Do one random change. It may fail; nobody retries it."""
        acts = [self.create, self.edit, self.edit, self.pause, self.resume, self.resume]
        act = self.choose.choice([*acts, self.trigger_now, self.trigger_now, self.cancel, self.delete])
        act_as(self.sender, act.__name__)
        try:
            await act()
        except FoliotError as error:
            self.tell(f"people: {act.__name__} failed: {error}")

    def _pick(self) -> Known | None:
        there = [each for each in self.known.values() if not each.is_deleted]
        return self.choose.choice(there) if there else None

    async def create(self) -> None:
        spec = ScheduleSpec.parse(self.definition())
        made: list[Schedule] = []

        def plan(now: datetime) -> PlannedChange:
            change = create(spec, host_id=DEFAULT_HOST_ID, now=now, author=SOMEBODY)
            made[:] = [change.schedule]
            return change

        try:
            await self.store.schedules.create(plan, SOMEBODY)
        finally:
            # Include a schedule whose creation has an unknown outcome: users look it up, and find it or not.
            for schedule in made:
                self.known[schedule.schedule_id] = Known(schedule)
        trigger = spec.trigger.model_dump(mode="json", exclude_defaults=True)
        self.tell(f"people create {spec.name}: {trigger}, {spec.overlap.policy}, {spec.misfire.policy}")
        self.hints.send(Hint.SCHEDULES, tuple(self.known)[-1:])

    async def edit(self) -> None:
        is_retimed = self.choose.random() < 0.5
        number = self.choose.random()

        def plan(known: Schedule, now: datetime) -> PlannedChange | None:
            document = known.spec.model_dump()
            if is_retimed:
                document["trigger"] = self.trigger(may_be_delay=known.spec.target.kind == "function")
            else:
                document["description"] = f"{number}"
            return edit(known, ScheduleSpec.parse(document), now=now, author=SOMEBODY)

        await self._change(plan, "retime" if is_retimed else "edit")

    async def pause(self) -> None:
        until_s = self.choose.choice([None, 4, 12])

        def plan(known: Schedule, now: datetime) -> PlannedChange | None:
            until_ts = None if until_s is None else now + timedelta(seconds=until_s)
            return pause(known, now=now, author=SOMEBODY, until_ts=until_ts)

        await self._change(plan, f"pause until {until_s}")

    async def resume(self) -> None:
        await self._change(lambda known, now: resume(known, now=now, author=SOMEBODY), "resume")

    async def delete(self) -> None:
        if self.choose.random() < 0.5:
            return
        changed = await self._change(lambda known, now: delete(known, now=now, author=SOMEBODY), "delete")
        if changed is not None:
            changed.is_deleted = True

    async def _change(
        self, plan: Callable[[Schedule, datetime], PlannedChange | None], told: str
    ) -> Known | None:
        picked = self._pick()
        if picked is None:
            return None
        picked.is_touched = True
        schedule_id = picked.schedule.schedule_id
        self.tell(f"people {told} {picked.schedule.spec.name}")
        await self.store.schedules.change(schedule_id, plan, SOMEBODY)
        self.hints.send(Hint.SCHEDULES, (schedule_id,))
        return picked

    async def trigger_now(self) -> None:
        picked = self._pick()
        if picked is not None:
            self.tell(f"people trigger {picked.schedule.spec.name}")
            await self.store.schedules.trigger(
                picked.schedule.schedule_id, by=TriggeredBy.API, author=SOMEBODY
            )
            self.hints.send(Hint.READY)

    async def cancel(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        rows = await self.store.schedules.executions(picked.schedule.schedule_id, limit=3)
        if rows:
            self.tell(f"people cancel a run of {picked.schedule.spec.name}")
            await self.store.executions.cancel(self.choose.choice(rows).execution_id, SOMEBODY)
            self.hints.send(Hint.CANCEL)
