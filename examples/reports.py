"""The smallest application: `python examples/reports.py`, or `foliot up --tasks examples/reports.py`."""

from foliot import Fire, Foliot, cron, every

app = Foliot()


@app.task(retries=3, timeout="10m", queue="reports")
async def send_report(region: str, fire: Fire) -> str:
    """Write the report of a region."""
    await fire.progress(0.5, "half way")
    return f"{region} report for {fire.fire_ts:%F}"


@app.task
def sweep(folder: str = "inbox") -> int:
    """A plain function; it runs beside the event loop."""
    return len(folder)


app.schedule(
    "report-eu",
    send_report,
    args={"region": "eu"},
    when=cron("0 7 * * mon-fri", tz="Europe/Paris"),
    overlap="skip",
)
app.schedule("sweep-inbox", sweep, when=every(minutes=15))

if __name__ == "__main__":
    app.run()
