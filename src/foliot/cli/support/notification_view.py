"""Display of notification rules and messages, and parsing of `--on` conditions."""

from datetime import datetime
from typing import Any

from foliot.cli.support.api_failures import UsageError
from foliot.cli.support.instants import both, read_instant, relative
from foliot.cli.support.output import Document, Row, View, state


def condition_of(text: str) -> dict[str, Any]:
    """Parse the value of an `--on` option. Raises UsageError."""
    kind, colon, more = text.partition(":")
    if not colon:
        return {"kind": kind}
    if (kind, more) == ("failure", "every"):
        return {"kind": kind, "every": True}
    if kind == "failures_in_a_row" and more.isdecimal():
        return {"kind": kind, "count": int(more)}
    name, number = ("grace_seconds", more.removeprefix("grace=")) if "=" in more else ("within_seconds", more)
    if kind == "did_not_run" and number.isdecimal():
        return {"kind": kind, name: int(number)}
    right = "failure:every, failures_in_a_row:3, did_not_run:3600 or did_not_run:grace=600"
    raise UsageError(f'--on can\'t be "{text}"; right would be {right}')


def _condition(condition: Document) -> str:
    """Format a condition as `--on` accepts it."""
    kind = str(condition["kind"])
    if condition.get("every"):
        return f"{kind}:every"
    if condition.get("grace_seconds") is not None:
        return f"{kind}:grace={condition['grace_seconds']:g}"
    number = condition.get("count") or condition.get("within_seconds")
    return kind if number is None else f"{kind}:{number:g}"


def _on(rule: Document) -> str:
    return " ".join(map(_condition, rule["on"]))


def _match(rule: Document) -> str:
    match = rule["match"]
    return " ".join([*match["schedules"], *(f"{name}={value}" for name, value in match["labels"].items())])


def _state(rule: Document, now: datetime) -> str:
    until = read_instant(rule["muted_until_ts"])
    if not rule["enabled"]:
        return "disabled"
    return "muted" if until is not None and until > now else "active"


def _rule_row(rule: Document, now: datetime) -> Row:
    return (
        str(rule["name"]),
        _on(rule),
        _match(rule) or "all",
        str(rule["to"]["kind"]),
        str(rule["to"]["url"]),
        state(_state(rule, now)),
    )


def _row(notification: Document, now: datetime) -> Row:
    data = notification["message"]["data"]
    return (
        str(notification["notification_id"]),
        str(notification["type"]),
        str(data.get("schedule", {}).get("name", "")),
        str(notification["rule_name"] or ""),
        state(str(notification["status"])),
        str(notification["attempts"]),
        both(notification["created_ts"], now),
        relative(notification["due_ts"], now),
        str(notification["error"] or ""),
    )


RULE_VIEW = View(
    kind="notification rules",
    headers=("NAME", "ON", "MATCH", "TO", "URL", "STATE"),
    row=_rule_row,
    name=lambda rule: str(rule["name"]),
)
MESSAGES = View(
    kind="notifications",
    headers=("ID", "TYPE", "SCHEDULE", "RULE", "STATUS", "TRIES", "MADE", "DUE", "ERROR"),
    row=_row,
    name=lambda notification: str(notification["notification_id"]),
)
