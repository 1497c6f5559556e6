"""Checks that every due time was decided once and delivered, with `foliot verify` and the agent's log.

A check that passes without any fault proves nothing. So the verdict is unknown unless the faults had an
effect.
"""

import asyncio
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select

from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from tests.chaos.agent import Delivery
from tests.chaos.cluster import Cluster
from tests.chaos.load import STEADY
from tests.chaos.members import WITHIN_S
from tests.chaos.plan import Role
from tests.engine import until

SECOND = timedelta(seconds=1)
MAX_SHOWN = 20


class Outcome(StrEnum):
    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


class Row(NamedTuple):
    """An execution for the agent, as the database has it."""

    key: str
    schedule_name: str
    status: str
    is_at_most_once: bool


@dataclass(frozen=True, slots=True)
class Bites:
    """The effects that the faults had."""

    elections: int
    """Number of elections over all shards. With one election, no leader has changed."""
    fenced: int
    """Writes of deposed leaders that the database refused."""
    refused: int
    """Settles that came too late and were refused."""
    lost_commits: int
    """Transactions that committed although their client got no reply."""

    def missing(self) -> list[str]:
        needed = {
            "no leader changed": self.elections > 1,
            "no stale write was rejected": self.fenced > 0,
            "no commit had an unknown outcome": self.lost_commits > 0,
        }
        return [words for words, is_there in needed.items() if not is_there]


@dataclass(frozen=True, slots=True)
class Verdict:
    findings: Sequence[str]
    bites: Bites
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        if self.findings:
            return Outcome.INVALID
        return Outcome.UNKNOWN if self.bites.missing() else Outcome.VALID

    def lines(self) -> list[str]:
        bites = self.bites
        told = [f"{name}: {value}" for name, value in self.numbers.items()]
        told.append(
            f"elections: {bites.elections}, fenced writes: {bites.fenced}, late settles refused: "
            f"{bites.refused}, replies to COMMIT lost: {bites.lost_commits}"
        )
        told += [f"WRONG {finding}" for finding in self.findings[:MAX_SHOWN]]
        if len(self.findings) > MAX_SHOWN:
            told.append(f"WRONG … and {len(self.findings) - MAX_SHOWN} more")
        told += [f"proves nothing: {words}" for words in self.bites.missing()]
        return [*told, f"verdict: {self.outcome}"]


async def silent_after(cluster: Cluster, healed_ts: datetime) -> list[str]:
    """Return the STEADY schedules that the agent gets no more requests for after all faults have ended."""
    silent: list[str] = []

    def all_are_heard() -> bool:
        heard = {
            each.schedule_name
            for each in cluster.agent.deliveries()
            if datetime.fromisoformat(each.fire_time) > healed_ts
        }
        silent[:] = [name for name in STEADY if name not in heard]
        return not silent

    with suppress(TimeoutError):
        await until(all_are_heard, within_s=WITHIN_S, every_s=0.2)
    return silent


async def judge(cluster: Cluster, exits: dict[str, int], silent: Sequence[str]) -> Verdict:
    """Judge a cluster that has settled and stopped with these exit statuses."""
    findings = [f"{name} ended with status {status}" for name, status in exits.items() if status]
    findings += [f"agent: {name} did not come any more when the faults were over" for name in silent]
    report, status = await _verify(cluster.url)
    for each in report["findings"]:
        where = f"{each['schedule_name'] or ''} {each['at'] or ''}".strip()
        findings.append(f"verify: {each['kind']} x {each['count']} {where}: {each['wrong']}")
    if status != (1 if report["findings"] else 0):
        findings.append(f"verify ended with status {status}")
    rows = await _rows(cluster)
    deliveries = cluster.agent.deliveries()
    findings += judge_deliveries(rows, deliveries)
    numbers = {
        "due times": report["due_times"],
        "executions": report["executions"],
        "messages": report["messages"],
        "worst lateness": f"{report['worst_late_seconds']:.1f} s",
        "deliveries": f"{len(deliveries)} of {len({each.key for each in deliveries})} executions",
    }
    return Verdict(findings, _bites(cluster), numbers)


def judge_deliveries(rows: Sequence[Row], deliveries: Sequence[Delivery]) -> list[str]:
    """Return the contradictions between the executions and the agent's log."""
    return [
        *_never_delivered(rows, deliveries),
        *_twice(rows, deliveries),
        *_two_keys(deliveries),
        *_times_left_out(deliveries),
    ]


def _never_delivered(rows: Sequence[Row], deliveries: Sequence[Delivery]) -> Iterator[str]:
    came = {each.key for each in deliveries}
    for row in rows:
        may_be_lost = row.status == "skipped" or (row.is_at_most_once and row.status == "unknown")
        if row.key not in came and not may_be_lost:
            yield f"agent: {row.schedule_name} {row.key} is {row.status} and never came"
    for key in came - {row.key for row in rows}:
        yield f"agent: {key} came and is not in the ledger"
    for row in rows:
        if row.status in ("failed", "timeout", "cancelled") and not row.is_at_most_once:
            yield f"agent: {row.schedule_name} {row.key} ended {row.status}"


def _twice(rows: Sequence[Row], deliveries: Sequence[Delivery]) -> Iterator[str]:
    times = Counter(each.key for each in deliveries)
    for row in rows:
        if row.is_at_most_once and times[row.key] > 1:
            yield f"agent: {row.schedule_name} {row.key} is at_most_once and came {times[row.key]} times"
    for (key, attempt), count in Counter((each.key, each.attempt) for each in deliveries).items():
        if count > 1:
            yield f"agent: attempt {attempt} of {key} came {count} times"


def _two_keys(deliveries: Sequence[Delivery]) -> Iterator[str]:
    keys: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for each in deliveries:
        keys[each.schedule_name, each.fire_time].add(each.key)
    for (name, fire_time), found in keys.items():
        if len(found) > 1:
            yield f"agent: {name} {fire_time} came under {len(found)} keys"


def _times_left_out(deliveries: Sequence[Delivery]) -> Iterator[str]:
    """Yield missing and extra fire times between the first and the last request, without the database."""
    for name in STEADY:
        times = {datetime.fromisoformat(each.fire_time) for each in deliveries if each.schedule_name == name}
        if not times:
            yield f"agent: {name} never came"
            continue
        count = (max(times) - min(times)) // SECOND + 1
        expected = {min(times) + SECOND * each for each in range(count)}
        for missing in sorted(expected - times):
            yield f"agent: {name} {missing.isoformat()} never came"
        for extra in sorted(times - expected):
            yield f"agent: {name} {extra.isoformat()} is none of its times"


async def _rows(cluster: Cluster) -> list[Row]:
    statement = (
        select(
            execution_t.c.execution_id,
            schedule_t.c.schedule_name,
            execution_t.c.status,
            (schedule_t.c.policies["delivery"].as_string() == "at_most_once").label("is_at_most_once"),
        )
        .join(schedule_t, schedule_t.c.schedule_id == execution_t.c.schedule_id)
        .where(schedule_t.c.target["kind"].as_string() == "http")
    )
    return [
        Row(str(row.execution_id), row.schedule_name, row.status, bool(row.is_at_most_once))
        for row in await cluster.read(statement)
    ]


async def _verify(url: str) -> tuple[dict[str, Any], int]:
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("foliot")),
        *("verify", "-o", "json"),
        env={key: value for key, value in os.environ.items() if not key.startswith("FOLIOT_")}
        | {"FOLIOT_DATABASE_URL": url},
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    report: dict[str, Any] = json.loads(said)
    assert process.returncode is not None
    return report, process.returncode


def _bites(cluster: Cluster) -> Bites:
    schedulers, workers = cluster.of_role(Role.SCHEDULER), cluster.of_role(Role.WORKER)
    elected = {(line["shard"], line["epoch"]) for each in schedulers for line in each.told("leader_elected")}
    return Bites(
        elections=len(elected),
        fenced=sum(len(each.told("write_fenced")) for each in schedulers),
        refused=sum(line["count"] for each in workers for line in each.told("settles_refused")),
        lost_commits=sum(each.proxy.lost_commits for each in cluster.members),
    )
