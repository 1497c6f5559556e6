"""`foliot cluster`: show shards and their leaders, drain instances, and change the number of shards."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.commands.instance import INSTANCES
from foliot.cli.support.api_failures import CommandError
from foliot.cli.support.completion import instance_names
from foliot.cli.support.instants import relative
from foliot.cli.support.lookup import on_each
from foliot.cli.support.options import ChangeOptions, Connection, ReasonOption, grouped
from foliot.cli.support.output import (
    Cell,
    Document,
    Format,
    FormatOption,
    Output,
    OutputOption,
    Row,
    print_json,
    print_rows,
    say,
    show_list,
    show_one,
    state,
    write,
)
from foliot.cli.support.prompts import may
from foliot.model.error_codes import Exit
from foliot.timing.clock import SystemClock

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient

app = typer.Typer(help="See who leads; drain instances; change the number of shards.")

InstancesArgument = Annotated[list[str], typer.Argument(metavar="INSTANCE...", autocompletion=instance_names)]


def _shard_row(shard: Document) -> Row:
    return (
        str(shard["shard"]),
        state("led" if shard["is_fresh"] else "unled"),
        str(shard["instance_id"] or ""),
        str(shard["epoch"]),
        f"{shard['heartbeat_age_seconds']:.1f} s ago" if shard["instance_id"] else "",
    )


def warnings_of(cluster: Document, now: datetime) -> Iterator[str]:
    unled = [str(shard["shard"]) for shard in cluster["shards"] if not shard["is_fresh"]]
    if unled:
        yield f"nobody leads shard {', '.join(unled)}: start `foliot scheduler`"
    overdue: dict[str, Any] = cluster["overdue"]
    if overdue["oldest"] is not None:
        more = " or more" if overdue["is_capped"] else ""
        since = relative(overdue["oldest"]["next_run_ts"], now)
        yield f"overdue: {overdue['count']}{more}; {overdue['oldest']['name']} was due {since}"
    for each in cluster["lease_providers"]:
        if each["away_count"]:
            yield (
                f"{each['away_count']} of {each['instance_count']} schedulers get no answer from "
                f"{each['kind']} at {each['address']}: the database alone decides who leads"
            )
    for each in cluster["unknown_tasks"]:
        yield (
            f"no worker knows the task {each['task']}: {each['schedule_count']} schedules wait for it, "
            f"such as {each['schedule_name']}"
        )
    for each in cluster["unserved_queues"]:
        yield (
            f"no worker serves the queue {each['queue']}: {each['waiting']} executions wait in it, "
            f"the first became ready {relative(each['oldest_ready_ts'], now)}"
        )


@app.command("status")
@grouped
def status(*, output: OutputOption = Output.TABLE, connection: Connection) -> None:
    """Show shards, instances and what is wrong; exit 1 if anything is."""
    now = SystemClock().now()
    with connection.open() as api:
        cluster: Document = api.get("cluster")
    warnings = list(warnings_of(cluster, now))
    if output is Output.JSON:
        print_json(cluster)
    else:
        headers = ("SHARD", "STATE", "LEADER", "EPOCH", "HEARTBEAT")
        print_rows([_shard_row(shard) for shard in cluster["shards"]], headers=headers)
        write("")
        show_list(cluster["instances"], Format.TABLE, INSTANCES, now)
        write("")
        witnesses = [f"{each['kind']} at {each['address']}" for each in cluster["lease_providers"]]
        print_rows([("leases by", Cell(" and ".join(["the database", *witnesses]), ""))])
    for warning in warnings:
        say(f"warning: {warning}")
    if warnings:
        raise typer.Exit(Exit.FAILED)


@app.command("drain")
@grouped
def drain(
    *,
    instances: InstancesArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Stop draining: they take work again.")] = False,
    reason: ReasonOption = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Let instances take on nothing more: workers finish what runs, schedulers hand their shards over."""
    from foliot.cli.support.rest_client import path_of

    act, participle = ("resume", "resumed") if undo else ("drain", "draining")
    with connection.open() as api:

        def apply_to_one(name: str) -> None:
            if change.dry_run:
                _require_instance(api, name)
                change.is_only_shown(f"{act} {name}")
                return
            instance = api.post(path_of("instances", name, act), {"reason": reason})
            say(f"{participle} {name}")
            if output is not Format.TABLE:
                show_one(instance, output, INSTANCES, SystemClock().now())

        on_each(instances, apply_to_one)


def _require_instance(api: "ApiClient", instance_id: str) -> None:
    if all(each["instance_id"] != instance_id for each in api.items("instances").items):
        raise CommandError(f'there is no instance "{instance_id}"', Exit.NOT_FOUND)


@app.command("reshard")
@grouped
def reshard(
    *,
    shards: Annotated[int, typer.Argument(metavar="N", min=1, max=1024)],
    reason: ReasonOption = None,
    output: OutputOption = Output.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Change the number of shards, while everything runs."""
    with connection.open() as api:
        if change.dry_run:
            change.is_only_shown(f"change {len(api.get('cluster')['shards'])} shards to {shards}")
            return
        if not may(f"Change the number of shards to {shards}? Every lease changes hands.", is_yes=change.yes):
            raise typer.Exit(Exit.FAILED)
        done: Document = api.post("cluster/reshard", {"shards": shards, "reason": reason})
    say(f"{done['shards_before']} → {done['shards']} shards")
    if output is Output.JSON:
        print_json(done)
