"""`foliot notification`: whom to tell when schedules fail, recover, stay silent or are late."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.asking import may
from foliot.cli.completing import notification_rule_names
from foliot.cli.failures import CommandError, UsageError
from foliot.cli.instants import both, read_instant, relative
from foliot.cli.lookup import on_each
from foliot.cli.options import Connection, Listing, YesOption, grouped, one_of
from foliot.cli.output import Document, Format, FormatOption, Row, View, say, show_one, state
from foliot.cli.watching import show
from foliot.model.verdict import Exit
from foliot.timing.clock import SystemClock

if TYPE_CHECKING:
    from foliot.cli.client import Api

app = typer.Typer(help="List messages, and manage the rules for them.")
rules = typer.Typer(help="Make, list, delete and test notification rules.")
app.add_typer(rules, name="rule")

RULES = "notifications/rules"
_NUMBERS = {"failures_in_a_row": "count", "did_not_run": "within_seconds"}
"""What the number behind a kind means."""


def _on(rule: Document) -> str:
    told = []
    for each in rule["on"]:
        rest = [str(value) for name, value in each.items() if name != "kind" and value not in (None, False)]
        told.append(f"{each['kind']}:{','.join(rest)}" if rest else str(each["kind"]))
    return " ".join(told)


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


@app.command("list")
@grouped
def list_notifications(
    *,
    status: Annotated[
        list[str] | None,
        typer.Option("--status", help="Repeatable.", **one_of("pending", "delivered", "dead")),
    ] = None,
    listing: Listing,
    connection: Connection,
) -> None:
    """List messages, latest first, and how far their delivery has come."""
    with connection.open() as api:
        wanted = {"status": status} if status else {}
        show(listing, lambda: api.items("notifications", wanted, limit=listing.most), MESSAGES)


@rules.command("list")
@grouped
def list_rules(*, listing: Listing, connection: Connection) -> None:
    """List rules."""
    with connection.open() as api:
        show(listing, lambda: api.items(RULES, limit=listing.most), RULE_VIEW)


@rules.command("create")
@grouped
def create(
    *,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="May stand in the file.")] = None,
    file: Annotated[
        str | None,
        typer.Option("-f", "--file", metavar="FILE", help="YAML or JSON; - is stdin. Options go over it."),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on",
            metavar="KIND[:N]",
            help="failure, recovery, failures_in_a_row:N, did_not_run:SECONDS, sla_miss. Repeatable.",
        ),
    ] = None,
    schedule: Annotated[
        list[str] | None, typer.Option("--schedule", metavar="NAME", help="About this one. Repeatable.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="About these. Repeatable.")
    ] = None,
    webhook: Annotated[
        str | None, typer.Option("--webhook", metavar="URL", help="Signed; takes --secret.")
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option("--secret", metavar="NAME", help="The stored secret that a webhook is signed with."),
    ] = None,
    slack: Annotated[
        str | None, typer.Option("--slack", metavar="URL", help="An incoming webhook of Slack.")
    ] = None,
    output: FormatOption = Format.TABLE,
    connection: Connection,
) -> None:
    """Make a rule, by options or from a file."""
    document = {} if file is None else _read(file)
    if name is not None:
        document["name"] = name
    if on:
        document["on"] = [_condition(each) for each in on]
    if schedule or label:
        document["match"] = {"schedules": schedule or [], "labels": dict(map(_label, label or ()))}
    if webhook is not None and slack is not None:
        raise UsageError("give either --webhook or --slack")
    if webhook is not None:
        if secret is None:
            raise UsageError("--webhook takes --secret, the name of the secret that it is signed with")
        document["to"] = {"kind": "webhook", "url": webhook, "secret": f"${{secret:{secret}}}"}
    elif slack is not None:
        document["to"] = {"kind": "slack", "url": slack}
    missing = [what for what in ("name", "on", "to") if what not in document]
    if missing:
        raise UsageError(f"say {', '.join(missing)}: NAME, --on, and --webhook or --slack; or give -f FILE")
    with connection.open() as api:
        made = api.post(RULES, document, is_once=True)
    say(f"made the rule {made['name']}")
    show_one(made, output, RULE_VIEW, SystemClock().now())


def _condition(text: str) -> dict[str, Any]:
    kind, colon, number = text.partition(":")
    if not colon:
        return {"kind": kind}
    if kind not in _NUMBERS or not number.isdecimal():
        raise UsageError(f'--on can\'t be "{text}"; right would be failures_in_a_row:3 or did_not_run:3600')
    return {"kind": kind, _NUMBERS[kind]: int(number)}


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f'--label can\'t be "{text}"; right would be team=pay')
    return name, value


def _read(file: str) -> dict[str, Any]:
    from foliot.cli.documents import FileError, read_document

    document = read_document(file)
    if not isinstance(document, dict):
        raise FileError(file, "is not a notification rule")
    return dict(document)


Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...", help="Names of rules, or their ids.", autocompletion=notification_rule_names
    ),
]


@rules.command("delete")
@grouped
def delete(*, names: Names, yes: YesOption = False, connection: Connection) -> None:
    """Delete rules, with their messages that are still to be sent."""
    with connection.open() as api:

        def act(name: str) -> None:
            rule = _find(api, name)
            if not may(f'Delete the notification rule "{rule["name"]}"?', is_yes=yes):
                raise CommandError(f"kept {rule['name']}")
            api.delete(f"{RULES}/{rule['rule_id']}")
            say(f"deleted {rule['name']}")

        on_each(names, act)


@rules.command("test")
@grouped
def send_test(*, names: Names, output: FormatOption = Format.TABLE, connection: Connection) -> None:
    """Send a test message by each of these rules, also by those that are muted."""
    with connection.open() as api:

        def act(name: str) -> None:
            rule = _find(api, name)
            made = api.post(f"{RULES}/{rule['rule_id']}/test", is_once=True)
            say(f"a test by {rule['name']} is under way: see foliot notification list")
            show_one(made, output, MESSAGES, SystemClock().now())

        on_each(names, act)


def _find(api: "Api", name_or_id: str) -> Document:
    # A host has at most 200.
    for rule in api.items(RULES).items:
        if name_or_id in (rule["name"], rule["rule_id"]):
            return rule
    raise CommandError(f'there is no notification rule "{name_or_id}"', Exit.NOT_FOUND)
