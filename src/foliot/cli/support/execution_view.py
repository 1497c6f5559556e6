"""Display of executions and their log lines."""

import json
from datetime import datetime

from foliot.cli.support.instants import both, duration, first_relative, local
from foliot.cli.support.output import Document, Row, View, state


def _row(execution: Document, now: datetime) -> Row:
    return (
        str(execution["execution_id"]),
        str(execution.get("schedule_name") or execution["schedule_id"]),
        first_relative(execution["fire_ts"], now),
        state(execution["status"], f"({execution['reason']})" if execution.get("reason") else ""),
        str(execution["attempt"] or ""),
        duration(execution.get("duration_seconds")),
        str(execution["triggered_by"]),
        str(execution.get("error") or ""),
    )


def _details(execution: Document, now: datetime) -> list[Row]:
    progress = execution.get("progress") or {}
    return [
        ("id", str(execution["execution_id"])),
        ("schedule", _schedule(execution)),
        ("fire time", both(execution["fire_ts"], now)),
        ("missed", _missed(execution, now)),
        ("status", state(execution["status"], f"({execution['reason']})" if execution.get("reason") else "")),
        ("cancelling", "yes" if execution["cancel_requested"] and execution["status"] == "running" else ""),
        ("triggered by", _triggered(execution)),
        ("queue", f"{execution['queue']}, priority {execution['priority']}"),
        ("attempt", str(execution["attempt"] or "")),
        ("started", both(execution.get("started_ts"), now)),
        ("ended", both(execution.get("ended_ts"), now)),
        ("took", duration(execution.get("duration_seconds"))),
        ("progress", _progress(progress)),
        ("arguments", json.dumps(execution["args"], ensure_ascii=False) if execution.get("args") else ""),
        ("worker", str(execution.get("worker_id") or "")),
        ("external id", str(execution.get("external_id") or "")),
        ("trace", str(execution.get("trace_id") or "")),
        ("result", _result(execution.get("result"))),
        ("error", str(execution.get("error") or "")),
        ("traceback", str(execution.get("traceback") or "").rstrip()),
    ]


def _schedule(execution: Document) -> str:
    name = execution.get("schedule_name") or execution["schedule_id"]
    return f"{name}, version {execution['aggregate_version']}"


def _missed(execution: Document, now: datetime) -> str:
    missed = execution.get("missed_count")
    return f"{missed} before it, from {both(execution.get('missed_from_ts'), now)} on" if missed else ""


def _triggered(execution: Document) -> str:
    by = execution.get("triggered_by_user")
    return str(execution["triggered_by"]) + (f" ({by})" if by else "")


def _progress(progress: Document) -> str:
    fraction, text = progress.get("fraction"), progress.get("text") or ""
    share = f"{fraction:.0%}" if isinstance(fraction, int | float) else ""
    return " ".join(each for each in (share, str(text)) if each)


def _result(result: object) -> str:
    if result is None or isinstance(result, str):
        return result or ""
    return json.dumps(result, ensure_ascii=False)


EXECUTIONS = View(
    kind="executions",
    headers=("EXECUTION", "SCHEDULE", "FIRE TIME", "STATUS", "ATTEMPT", "TOOK", "BY", "ERROR"),
    row=_row,
    name=lambda execution: str(execution["execution_id"]),
    details=_details,
)


def _attempt_row(attempt: Document, now: datetime) -> Row:
    return (
        str(attempt["attempt"]),
        state(attempt["status"]),
        both(attempt.get("started_ts"), now),
        duration(attempt.get("duration_seconds")),
        str(attempt.get("worker_id") or ""),
        str(attempt.get("error") or ""),
    )


ATTEMPTS = View(
    kind="attempts",
    headers=("ATTEMPT", "STATUS", "STARTED", "TOOK", "WORKER", "ERROR"),
    row=_attempt_row,
    name=lambda attempt: str(attempt["attempt"]),
)


def logged_line(line: Document) -> str:
    """Format a log line of an execution for people."""
    return f"{local(line['logged_ts'])} {str(line['level']).upper():<8}{line['message']}"
