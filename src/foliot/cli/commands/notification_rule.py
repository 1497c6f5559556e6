"""`foliot notification rule`: whom to notify when schedules fail, recover, do not run or are late."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.support.api_failures import CommandError, UsageError
from foliot.cli.support.completion import notification_rule_names
from foliot.cli.support.instants import instant_of, local
from foliot.cli.support.lookup import on_each
from foliot.cli.support.notification_view import MESSAGES, RULE_VIEW, condition_of
from foliot.cli.support.options import ChangeOptions, Connection, Listing, grouped
from foliot.cli.support.output import Document, Format, FormatOption, say, show_one
from foliot.cli.support.prompts import may
from foliot.cli.support.watch import show
from foliot.model.error_codes import Exit
from foliot.timing.clock import SystemClock

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient

app = typer.Typer(help="Make, list, change, mute, test and delete notification rules.")

RULES = "notifications/rules"

FileOption = Annotated[
    str | None,
    typer.Option("-f", "--file", metavar="FILE", help="YAML or JSON; - is stdin. Options override it."),
]
OnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="KIND[:N]",
        help="failure, failure:every, recovery, failures_in_a_row:N, did_not_run:SECONDS, "
        "did_not_run:grace=SECONDS, sla_miss. Repeatable.",
    ),
]
ScheduleOption = Annotated[
    list[str] | None, typer.Option("--schedule", metavar="NAME", help="Only for this schedule. Repeatable.")
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME=VALUE", help="Only for schedules with this label. Repeatable."),
]
WebhookOption = Annotated[
    str | None,
    typer.Option(
        "--webhook", metavar="URL", help="URL of a webhook. Messages are signed, so it needs --secret."
    ),
]
SecretOption = Annotated[
    str | None,
    typer.Option("--secret", metavar="NAME", help="The stored secret that a webhook is signed with."),
]
SlackOption = Annotated[
    str | None, typer.Option("--slack", metavar="URL", help="URL of an incoming webhook of Slack.")
]
Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...", help="Names of rules, or their ids.", autocompletion=notification_rule_names
    ),
]


@app.command("list")
@grouped
def list_rules(*, listing: Listing, connection: Connection) -> None:
    """List rules."""
    with connection.open() as api:
        show(listing, lambda: api.items(RULES, limit=listing.max_items), RULE_VIEW)


@app.command("create")
@grouped
def create(
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The name. It may be in the file instead.")
    ] = None,
    file: FileOption = None,
    on: OnOption = None,
    schedule: ScheduleOption = None,
    label: LabelOption = None,
    webhook: WebhookOption = None,
    secret: SecretOption = None,
    slack: SlackOption = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Make a rule, by options or from a file."""
    document = _said(file, on, schedule, label) | _address(webhook, secret, slack)
    if name is not None:
        document["name"] = name
    missing = [what for what in ("name", "on", "to") if what not in document]
    if missing:
        raise UsageError(f"say {', '.join(missing)}: NAME, --on, and --webhook or --slack; or give -f FILE")
    with connection.open() as api:
        if change.is_only_shown(f"make the rule {document['name']}"):
            return
        made = api.post(RULES, document, is_once=True)
    say(f"made the rule {made['name']}")
    show_one(made, output, RULE_VIEW, SystemClock().now())


@app.command("set")
@grouped
def change_rule(
    *,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A name or an id.", autocompletion=notification_rule_names),
    ],
    file: FileOption = None,
    on: OnOption = None,
    schedule: ScheduleOption = None,
    label: LabelOption = None,
    webhook: WebhookOption = None,
    secret: SecretOption = None,
    slack: SlackOption = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Change what is given of a rule; --on, and --schedule with --label, take the place of what was there."""
    document = _said(file, on, schedule, label) | _address(webhook, secret, slack)
    if not document:
        raise UsageError("say what is to change: --on, --schedule, --label, --webhook, --slack or -f FILE")
    with connection.open() as api:
        rule = _find(api, name)
        if change.is_only_shown(f"change {', '.join(document)} of the rule {rule['name']}"):
            return
        if isinstance(match := document.get("match"), dict):
            # Remove the old labels: a merge patch would keep them.
            gone = dict.fromkeys(rule["match"]["labels"])
            document["match"] = match | {"labels": gone | match.get("labels", {})}
        changed = api.patch(f"{RULES}/{rule['rule_id']}", document)
    say(f"changed the rule {changed['name']}")
    show_one(changed, output, RULE_VIEW, SystemClock().now())


@app.command("enable")
@grouped
def enable(*, names: Names, change: ChangeOptions, connection: Connection) -> None:
    """Let rules be heard again: of what happens from now on."""
    _patch_each(connection, names, {"enabled": True}, ("enable {}", "enabled {}"), change)


@app.command("disable")
@grouped
def disable(*, names: Names, change: ChangeOptions, connection: Connection) -> None:
    """Let rules tell nothing until they are enabled."""
    _patch_each(connection, names, {"enabled": False}, ("disable {}", "disabled {}"), change)


@app.command("mute")
@grouped
def mute(
    *,
    names: Names,
    until: Annotated[
        str,
        typer.Option("--until", metavar="ISO_TIME|DURATION", help="End: a time, or a duration such as 2h."),
    ],
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Let rules tell nothing for a while."""
    until_ts = instant_of(until, "--until", SystemClock().now(), is_ahead=True)
    end = f"{{}} until {local(until_ts)}"
    _patch_each(connection, names, {"muted_until_ts": until_ts}, (f"mute {end}", f"muted {end}"), change)


@app.command("unmute")
@grouped
def unmute(*, names: Names, change: ChangeOptions, connection: Connection) -> None:
    """Let muted rules be heard again: of what happens from now on."""
    _patch_each(connection, names, {"muted_until_ts": None}, ("unmute {}", "unmuted {}"), change)


def _patch_each(
    connection: Connection,
    names: list[str],
    fields: dict[str, Any],
    texts: tuple[str, str],
    change: ChangeOptions,
) -> None:
    """Change fields of rules. `texts`: the texts for a dry run and for a completed change."""
    planned, done = texts
    with connection.open() as api:

        def act(name: str) -> None:
            rule = _find(api, name)
            if change.is_only_shown(planned.format(rule["name"])):
                return
            api.patch(f"{RULES}/{rule['rule_id']}", fields)
            say(done.format(rule["name"]))

        on_each(names, act)


def _said(
    file: str | None, on: list[str] | None, schedule: list[str] | None, label: list[str] | None
) -> dict[str, Any]:
    """Return the definition of a rule from a file, with the options applied over it."""
    document = {} if file is None else _read(file)
    if on:
        document["on"] = [condition_of(each) for each in on]
    if schedule or label:
        document["match"] = {"schedules": schedule or [], "labels": dict(map(_label, label or ()))}
    return document


def _address(webhook: str | None, secret: str | None, slack: str | None) -> dict[str, Any]:
    if webhook is not None and slack is not None:
        raise UsageError("give either --webhook or --slack")
    if webhook is not None:
        if secret is None:
            raise UsageError("--webhook takes --secret, the name of the secret that it is signed with")
        return {"to": {"kind": "webhook", "url": webhook, "secret": f"${{secret:{secret}}}"}}
    return {} if slack is None else {"to": {"kind": "slack", "url": slack}}


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f'--label can\'t be "{text}"; right would be team=pay')
    return name, value


def _read(file: str) -> dict[str, Any]:
    from foliot.cli.support.documents import FileError, read_document

    document = read_document(file)
    if not isinstance(document, dict):
        raise FileError(file, "is not a notification rule")
    return dict(document)


@app.command("delete")
@grouped
def delete(*, names: Names, change: ChangeOptions, connection: Connection) -> None:
    """Delete rules, with their messages that are still to be sent."""
    with connection.open() as api:

        def act(name: str) -> None:
            rule = _find(api, name)
            if change.is_only_shown(f"delete {rule['name']}"):
                return
            if not may(f'Delete the notification rule "{rule["name"]}"?', is_yes=change.yes):
                raise CommandError(f"kept {rule['name']}")
            api.delete(f"{RULES}/{rule['rule_id']}")
            say(f"deleted {rule['name']}")

        on_each(names, act)


@app.command("test")
@grouped
def send_test(
    *, names: Names, output: FormatOption = Format.TABLE, change: ChangeOptions, connection: Connection
) -> None:
    """Send a test message by each of these rules, also by those that are muted."""
    with connection.open() as api:

        def act(name: str) -> None:
            rule = _find(api, name)
            if change.is_only_shown(f"send a test message by {rule['name']}"):
                return
            made = api.post(f"{RULES}/{rule['rule_id']}/test", is_once=True)
            say(f"a test by {rule['name']} is under way: see foliot notification list")
            show_one(made, output, MESSAGES, SystemClock().now())

        on_each(names, act)


def _find(api: "ApiClient", name_or_id: str) -> Document:
    # A host has at most 200 rules.
    for rule in api.items(RULES).items:
        if name_or_id in (rule["name"], rule["rule_id"]):
            return rule
    raise CommandError(f'there is no notification rule "{name_or_id}"', Exit.NOT_FOUND)
