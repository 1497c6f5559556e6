"""Display of schedules, their fire times and backfills."""

import json
from datetime import datetime
from typing import Any

from foliot.cli.support.instants import both, duration, first_relative, relative
from foliot.cli.support.output import Cell, Document, Row, View, state


def _what(schedule: Document) -> str:
    return str(schedule.get("target_description") or schedule["target"].get("kind", ""))


def _when(schedule: Document) -> str:
    return str(schedule.get("trigger_description") or schedule["trigger"].get("kind", ""))


def _last(schedule: Document, now: datetime) -> Cell:
    return state(schedule.get("last_status"), relative(schedule.get("last_run_ts"), now))


def _row(schedule: Document, now: datetime) -> Row:
    return (
        str(schedule["name"]),
        _when(schedule),
        _what(schedule),
        state(schedule["state"]),
        _last(schedule, now),
        first_relative(schedule.get("next_run_ts"), now),
    )


def _state(schedule: Document, now: datetime) -> Cell:
    why = schedule.get("pause_reason") if schedule.get("paused") else schedule.get("state_reason")
    until = both(schedule.get("paused_until_ts"), now)
    more = "".join([f"until {until}" if until else "", f": {why}" if why else ""])
    return state(schedule["state"], more)


def _details(schedule: Document, now: datetime) -> list[Row]:
    retry, misfire, overlap = schedule["retry"], schedule["misfire"], schedule["overlap"]
    return [
        ("name", str(schedule["name"])),
        ("id", str(schedule["schedule_id"])),
        ("description", str(schedule["description"])),
        ("state", _state(schedule, now)),
        ("when", _when(schedule)),
        ("trigger", _compact(schedule["trigger"])),
        ("what", _what(schedule)),
        ("target", _compact(schedule["target"])),
        ("next", both(schedule.get("next_run_ts"), now)),
        ("last", _last(schedule, now)),
        ("runs", _runs(schedule)),
        ("queue", f"{schedule['queue']}, priority {schedule['priority']}"),
        ("timeout", duration(schedule["timeout_seconds"])),
        ("misfire", f"{misfire['policy']}, grace {duration(misfire['grace_seconds'])}"),
        ("overlap", f"{overlap['policy']}, at most {overlap['max_instances']} at once"),
        ("retry", f"attempts: at most {retry['max_attempts']}"),
        ("delivery", str(schedule["delivery"])),
        ("from", both(schedule.get("start_ts"), now)),
        ("to", both(schedule.get("end_ts"), now)),
        ("window", _compact(schedule.get("window"))),
        ("calendars", ", ".join(schedule["calendars"])),
        ("jitter", duration(schedule["jitter_seconds"]) if schedule["jitter_seconds"] else ""),
        ("labels", ", ".join(f"{name}={value}" for name, value in schedule["labels"].items())),
        ("managed by", _managed(schedule)),
        ("version", _version(schedule, now)),
    ]


def _runs(schedule: Document) -> str:
    max_runs = schedule.get("max_runs")
    # `run_count` does not include manual runs and backfills.
    return f"{schedule['run_count']}" + (f" of {max_runs}" if max_runs else "") + " scheduled"


def _managed(schedule: Document) -> str:
    source = schedule.get("managed_source")
    return str(schedule["managed_by"]) + (f" ({source})" if source else "")


def _version(schedule: Document, now: datetime) -> str:
    by = schedule.get("updated_by") or schedule.get("created_by")
    version = f"{schedule['aggregate_version']}, {relative(schedule['updated_ts'], now)}"
    return version + (f" by {by}" if by else "")


def _compact(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


SCHEDULES = View(
    kind="schedules",
    headers=("NAME", "WHEN", "TARGET", "STATE", "LAST", "NEXT"),
    row=_row,
    name=lambda schedule: str(schedule["name"]),
    details=_details,
)


def _fire_row(fire: Document, now: datetime) -> Row:
    missed = fire.get("missed_count") or 0
    return (
        both(fire["fire_ts"], now),
        state(fire["state"], f"and {missed} before it" if missed else ""),
        state(fire.get("status")),
        str(fire.get("reason") or ""),
        str(fire.get("execution_id") or ""),
    )


FIRES = View(
    kind="fire times",
    headers=("FIRE TIME", "STATE", "STATUS", "REASON", "EXECUTION"),
    row=_fire_row,
    name=lambda fire: str(fire["fire_ts"]),
)


def _backfill_row(backfill: Document, now: datetime) -> Row:
    return (
        str(backfill["backfill_id"]),
        both(backfill["from_ts"], now),
        both(backfill["to_ts"], now),
        state(backfill["state"]),
        str(backfill["total_count"]),
        str(backfill["created_count"]),
        str(backfill["existing_count"]),
        str(backfill["ended_count"]),
    )


BACKFILLS = View(
    kind="backfills",
    headers=("BACKFILL", "FROM", "TO", "STATE", "TIMES", "MADE", "THERE ALREADY", "ENDED"),
    row=_backfill_row,
    name=lambda backfill: str(backfill["backfill_id"]),
)
