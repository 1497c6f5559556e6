"""Events, and what is done about them once each: `foliot up --tasks examples/consumer.py`."""

from sqlalchemy import Column, Float, MetaData, String, Table, insert

from foliot import EventTransaction, Foliot, event, every

app = Foliot()
invoice = Table("invoice", MetaData(), Column("event_id", String(36)), Column("amount", Float))

app.schedule(
    "subscription-due",
    event("subscriptions", "SubscriptionDue", {"plan": "team", "amount": 49.0}),
    when=every(minutes=1),
)


@app.on_event("billing", topics=["subscriptions"])
async def bill(transaction: EventTransaction) -> None:
    """Write invoices in the transaction that moves the offset: one for each event, whatever crashes."""
    await transaction.connection.run_sync(invoice.create, checkfirst=True)
    for due in transaction.events:
        row = {"event_id": str(due.id), "amount": due.data["amount"]}
        await transaction.connection.execute(insert(invoice).values(row))


if __name__ == "__main__":
    app.run()
