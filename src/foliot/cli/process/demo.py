"""Demo schedules for `foliot up --demo`. Each shows one feature."""

import asyncio

import structlog

from foliot.kinds.cron_trigger import cron
from foliot.kinds.delay_trigger import delay
from foliot.kinds.interval_trigger import every
from foliot.kinds.target_protocol import Fire
from foliot.sdk.app import Foliot

LABELS = {"demo": "true"}
SLOW_STEPS = 6
FLAKY_FAILURES = 2


async def demo_heartbeat(fire: Fire) -> str:
    """Says that it is alive, every 5 seconds."""
    return _say(fire, "alive")


async def demo_quarter_minute(fire: Fire) -> str:
    """Fires at seconds 0, 15, 30 and 45 of every minute, by a cron expression with seconds."""
    return _say(fire, f"second {fire.fire_ts.second} of the minute")


async def demo_flaky(fire: Fire) -> str:
    """Fails twice and then succeeds, so that its retries can be seen."""
    if fire.attempt <= FLAKY_FAILURES:
        raise ConnectionError(f"attempt {fire.attempt} fails on purpose")
    return _say(fire, f"succeeded at attempt {fire.attempt}")


async def demo_slow(fire: Fire) -> str:
    """Takes longer than the time between its fires, so that overlap skips some of them."""
    for step in range(SLOW_STEPS):
        await asyncio.sleep(1)
        await fire.progress((step + 1) / SLOW_STEPS, f"step {step + 1} of {SLOW_STEPS}")
    return _say(fire, f"done after {SLOW_STEPS} steps")


async def demo_patient(fire: Fire) -> str:
    """Starts anew 8 seconds after its last run has ended, however long that took."""
    await asyncio.sleep(1)
    return _say(fire, "done; the next in 8 s")


def _say(fire: Fire, text: str) -> str:
    structlog.get_logger().info("demo_said", schedule=fire.schedule_name, text=text, fire_time=fire.fire_ts)
    return text


def demo_app() -> Foliot:
    """Return an application with the demo's task functions and schedules."""
    app = Foliot()
    for function in (demo_heartbeat, demo_quarter_minute, demo_slow, demo_patient):
        app.task(function)
    app.task(retries=FLAKY_FAILURES)(demo_flaky)
    app.schedule("demo-heartbeat", demo_heartbeat, when=every(seconds=5), labels=LABELS)
    app.schedule("demo-quarter-minute", demo_quarter_minute, when=cron("*/15 * * * * *"), labels=LABELS)
    app.schedule("demo-flaky", demo_flaky, when=every(seconds=20), labels=LABELS)
    app.schedule("demo-slow", demo_slow, when=every(seconds=4), overlap="skip", labels=LABELS)
    app.schedule("demo-patient", demo_patient, when=delay("8s"), labels=LABELS)
    return app
