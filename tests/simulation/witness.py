"""Judges every commit by its effect on the rows, independent of who made it and why.

It shares no rule with the product. The allowed state changes of executions, and who may take a lease or write
under it, are defined here again, from the documented guarantees.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from foliot.model.instant import micros_of
from tests.simulation.network import Sender

OPEN = frozenset({"pending", "running", "retrying"})
NEXT = {
    None: frozenset({"pending", "skipped", "success"}),
    "pending": frozenset({"running", "cancelled"}),
    "retrying": frozenset({"running", "cancelled", "failed"}),
    "running": frozenset({"success", "failed", "timeout", "cancelled", "unknown", "retrying", "pending"}),
}
"""Allowed next statuses by current status. None: the row is new. An event is a success at once."""


@dataclass(slots=True)
class Witness:
    raw: sqlite3.Connection
    now: Callable[[], datetime]
    ttl_s: float
    accuse: Callable[[str], None]
    epochs: dict[int, int] = field(default_factory=dict)
    heartbeats: dict[tuple[int, str], int] = field(default_factory=dict)
    """Last heartbeat, in microseconds, by (lock, holder)."""

    def committed(self, sender: Sender) -> None:
        """Judge the changes of a transaction that this process has committed."""
        seen = self.raw.execute("SELECT * FROM seen ORDER BY number").fetchall()
        if not seen:
            return
        self.raw.execute("DELETE FROM seen")
        schedules = set()
        for _number, what, row, *values in seen:
            if what == "lock":
                self._judge_lock(sender, int(row), values)
            elif what == "schedule":
                self._judge_schedule(sender, row, values)
            else:
                schedules.add(self._judge_execution(sender, row, values))
        self._judge_overlap(schedules)

    def sent(self, sender: Sender, lock_id: int) -> None:
        """Check, at the first write of a step under a lease, that the lease can still be trusted."""
        heartbeat = self.heartbeats.get((lock_id, sender.name))
        age = None if heartbeat is None else micros_of(self.now()) - heartbeat
        if age is None or age > self.ttl_s * 1_000_000:
            told = "none" if age is None else f"{age / 1e6:g} s ago"
            self.accuse(f"{sender.name} acts for lock {lock_id}, its last heartbeat: {told}")

    # --- leases -----------------------------------------------------------------------------------

    def _judge_lock(self, sender: Sender, lock_id: int, values: list[Any]) -> None:
        epoch_before, epoch, holder_before, holder, beat_before, beat, *_ = values
        known = self.epochs.get(lock_id, -1)
        if epoch < known or (epoch_before is not None and epoch < epoch_before):
            self.accuse(f"the epoch of lock {lock_id} fell from {known} to {epoch}")
        self.epochs[lock_id] = max(known, epoch)
        if holder:
            self.heartbeats[lock_id, holder] = beat
            if holder != sender.name:
                self.accuse(f"{sender.name} wrote the lock {lock_id} of {holder}")
        if epoch_before is None or (epoch, holder) == (epoch_before, holder_before):
            return
        if holder and epoch != epoch_before + 1:
            self.accuse(f"lock {lock_id} was taken in epoch {epoch}, after {epoch_before}")
        silent = timedelta(microseconds=micros_of(self.now()) - beat_before)
        if holder and holder_before and silent <= timedelta(seconds=self.ttl_s):
            self.accuse(f"{holder} took lock {lock_id} from {holder_before}, silent for only {silent}")

    def _leads(self, sender: Sender, slot: int) -> bool:
        """Return whether the process leads the shard of a slot now, by the database."""
        holders = self.raw.execute("SELECT instance_id FROM scheduler_lock_t ORDER BY lock_id").fetchall()
        return bool(holders[slot % len(holders)][0] == sender.name)

    # --- schedules --------------------------------------------------------------------------------

    def _judge_schedule(self, sender: Sender, row: str, values: list[Any]) -> None:
        before, after, version_before, version, _, slot, *_ = values
        if version < version_before:
            self.accuse(f"the version of schedule {row} fell")
        if sender.role != "scheduler":
            return
        if version != version_before:
            self.accuse(f"{sender.name}, a scheduler, changed the version of schedule {row}")
        if not self._leads(sender, slot):
            self.accuse(f"{sender.name} moved schedule {row} without leading it")
        if before is not None and after is not None and after < before:
            self.accuse(f"{sender.name} moved schedule {row} back from {before} to {after}")

    # --- executions -------------------------------------------------------------------------------

    def _judge_execution(self, sender: Sender, row: str, values: list[Any]) -> str:
        before, after, attempt_before, attempt, worker_before, worker, lease_before, lease = values
        told = f"{sender.name}: execution {row} from {before} ({attempt_before}) to {after} ({attempt})"
        schedule_id, slot, scheduler, made_by = self.raw.execute(
            "SELECT e.schedule_id, s.slot, e.scheduler_instance_id, e.triggered_by FROM execution_t e"
            " JOIN schedule_t s ON s.schedule_id = e.schedule_id WHERE e.execution_id = ?",
            (row,),
        ).fetchone()
        if before != after and after not in NEXT.get(before, frozenset()):
            self.accuse(f"{told}: no such way")
        if before is None:
            if scheduler not in (None, sender.name):
                self.accuse(f"{told}: written in the name of {scheduler}")
            if sender.role == "scheduler" and not self._leads(sender, slot):
                self.accuse(f"{told}: fired by one that does not lead")
            if made_by == "scheduler" and scheduler is None and after != "skipped":
                self.accuse(f"{told}: fired by nobody")
            return str(schedule_id)
        if before not in OPEN and (after, attempt, worker) != (before, attempt_before, worker_before):
            self.accuse(f"{told}: it had been settled")
        if attempt != attempt_before:
            is_claim = attempt == attempt_before + 1 and after == "running" and before != "running"
            if not is_claim or worker != sender.name:
                self.accuse(f"{told}: not a claim")
        elif before == "running" and after != "running":
            self._judge_end(sender, told, worker_before, lease_before, slot)
        elif before == after == "running" and lease != lease_before and worker_before != sender.name:
            self.accuse(f"{told}: renewed by another than {worker_before}")
        return str(schedule_id)

    def _judge_end(self, sender: Sender, told: str, worker: str, lease_until: int, slot: int) -> None:
        if sender.role == "worker" and worker != sender.name:
            self.accuse(f"{told}: settled by another than {worker}")
        if sender.role == "scheduler":
            if lease_until >= micros_of(self.now()):
                self.accuse(f"{told}: rescued from {worker}, whose lease has not run out")
            if not self._leads(sender, slot):
                self.accuse(f"{told}: rescued by one that does not lead")
        if sender.role == "people":
            self.accuse(f"{told}: ended by people while it ran")

    def _judge_overlap(self, schedules: set[str]) -> None:
        for schedule_id in schedules:
            name, limit, count = self.raw.execute(
                "SELECT schedule_name,"
                " CASE json_extract(policies, '$.overlap.policy') WHEN 'allow' THEN NULL"
                " ELSE json_extract(policies, '$.overlap.max_instances') END,"
                " (SELECT count(*) FROM execution_t e WHERE e.schedule_id = s.schedule_id"
                "  AND e.status IN ('pending', 'running', 'retrying') AND e.due_by_ts IS NOT NULL)"
                " FROM schedule_t s WHERE schedule_id = ?",
                (schedule_id,),
            ).fetchone()
            if limit is not None and count > limit:
                self.accuse(f"{name} has {count} executions that may run, {limit} are allowed")
