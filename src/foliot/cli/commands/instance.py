"""`foliot instance`: the processes of the cluster."""

from datetime import datetime

import typer

from foliot.cli.support.instants import relative
from foliot.cli.support.options import Connection, Listing, grouped
from foliot.cli.support.output import Document, Row, View, state
from foliot.cli.support.watch import show

app = typer.Typer(help="See the processes of the cluster.")


def _state(instance: Document) -> str:
    if not instance["is_live"]:
        return "gone"
    return "draining" if instance["is_draining"] else "live"


def _row(instance: Document, now: datetime) -> Row:
    leads = ", ".join(str(shard) for shard in instance["leads"])
    is_worker = instance["known_tasks"] is not None
    return (
        str(instance["instance_id"]),
        ", ".join(instance["roles"]),
        state(_state(instance)),
        f"shard {leads}" if leads else "",
        f"{instance['load']} of {instance['capacity']}" if is_worker else "",
        ", ".join(instance["queues"]) if instance["queues"] else ("all" if is_worker else ""),
        relative(instance["started_ts"], now),
        f"{instance['heartbeat_age_seconds']:.1f} s ago",
        str(instance["version"]),
    )


INSTANCES = View(
    kind="instances",
    headers=("INSTANCE", "ROLES", "STATE", "LEADS", "RUNS", "QUEUES", "STARTED", "HEARTBEAT", "VERSION"),
    row=_row,
    name=lambda instance: str(instance["instance_id"]),
)


@app.command("list")
@grouped
def list_instances(*, listing: Listing, connection: Connection) -> None:
    """List the processes of the cluster."""
    with connection.open() as api:
        show(listing, lambda: api.items("instances", limit=listing.max_items), INSTANCES)
