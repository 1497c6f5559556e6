from datetime import UTC, datetime

import pytest

from foliot.kinds.cron_trigger import CronTrigger
from foliot.kinds.delay_trigger import DelayTrigger
from foliot.kinds.interval_trigger import IntervalTrigger
from foliot.kinds.once_trigger import OnceTrigger
from foliot.kinds.rrule_trigger import RRuleTrigger


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("@daily", "At 00:00"),
        ("0 9 * * MON-FRI", "At 09:00, Monday through Friday"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("* * * * * *", "Every second"),
        ("0 0 ? * FRI#2", "At 00:00, on the second Friday of the month"),
        ("0 0 LW * ?", "At 00:00, on the last weekday of the month"),
        ("0 0 15W * *", "At 00:00, on the weekday nearest day 15 of the month"),
        ("0 0 * * FRIL", "At 00:00, on the last Friday of the month"),
        ("0 0 1,15W * *", "At 00:00, day 1 and day 15W"),
        ("0 0 * * 1,5L", "At 00:00, weekday 1 and weekday 5L"),
        ("0 0 13 * 5", "At 00:00, on day 13 of the month, or on Friday"),
        ("0 0 */2 * 5", "At 00:00, every 2 days, and only on Friday"),
        ("H * * * *", "At a minute of its own, every hour"),
        (
            "H H(9-17) * * 1-5",
            "At a minute of its own, an hour of its own from 9 to 17, Monday through Friday",
        ),
        ("H/15 * * * *", "Every 15 minutes with an offset of its own, every hour"),
        ("0 0 H * *", "At 00:00, a day of its own"),
    ],
)
def test_a_cron_expression_in_words(expression: str, words: str) -> None:
    assert (
        CronTrigger(expression=expression, timezone="Europe/Berlin").describe() == f"{words} (Europe/Berlin)"
    )


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("FREQ=MONTHLY;BYDAY=-1FR", "Every month, on the last Friday"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE", "Every 2 weeks, on Monday and Wednesday"),
        ("FREQ=YEARLY;BYMONTH=1,7;COUNT=4", "Every year, in January and July, 4 times"),
        ("FREQ=MONTHLY;BYDAY=1MO,-2TH", "Every month, on the 1st Monday and the 2nd Thursday from the end"),
        ("FREQ=DAILY;UNTIL=20270101T000000Z", "Every day, until 2027-01-01 00:00"),
    ],
)
def test_a_rule_in_words(rule: str, words: str) -> None:
    assert RRuleTrigger(rule=rule).describe() == f"{words} (UTC)"


def test_the_others_in_words() -> None:
    assert IntervalTrigger.model_validate({"minutes": 5}).describe() == "Every 5 minutes"
    assert (
        IntervalTrigger.model_validate({"months": 1, "timezone": "Asia/Tokyo"}).describe()
        == "Every month (Asia/Tokyo)"
    )
    assert (
        OnceTrigger(at=datetime(2026, 5, 5, 12, tzinfo=UTC)).describe()
        == "Once, at 2026-05-05 12:00:00+00:00"
    )
    assert DelayTrigger(seconds=30).describe() == "30 seconds after the last run has ended"
    assert DelayTrigger(seconds=1).describe() == "1 second after the last run has ended"
