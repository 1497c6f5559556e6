"""The consumer of the cluster tests. Each handled event is a row, in a table that allows duplicates."""

import os

from sqlalchemy import text

from foliot import EventTransaction, Foliot

app = Foliot()


SOURCE = os.environ.get("CONSUMER_SOURCE", "database")
TOPIC = os.environ.get("CONSUMER_TOPIC", "orders")


@app.on_event(f"noting-{TOPIC}", topics=[TOPIC], partitions=4, batch=3, source=SOURCE)
async def note(transaction: EventTransaction) -> None:
    """Take a moment for each event, so that a kill interrupts a batch."""
    for event in transaction.events:
        await transaction.connection.execute(
            text(
                "INSERT INTO noted (event_id, aggregate_id, aggregate_version, pid) "
                "SELECT :event_id, :aggregate_id, :aggregate_version, :pid FROM pg_sleep(0.001)"
            ),
            {
                "event_id": str(event.id),
                "aggregate_id": event.aggregate_id,
                "aggregate_version": event.aggregate_version,
                "pid": os.getpid(),
            },
        )
