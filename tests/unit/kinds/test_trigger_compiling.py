from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from pydantic import TypeAdapter

from foliot.model.errors import InvalidError
from foliot.model.kind import Trigger
from foliot.model.policy import Dst, DstGap
from foliot.model.recurrence import Recurrence

READ: TypeAdapter[Trigger] = TypeAdapter(Trigger)
ANCHOR = datetime(2026, 5, 5, 12, tzinfo=UTC)


def compiled(
    document: dict[str, object], dst: Dst | None = None, anchor: datetime = ANCHOR, key: str = "a"
) -> Recurrence:
    return READ.validate_python(document).compile(dst=dst or Dst(), anchor=anchor, key=key)


def cron(expression: str, **more: object) -> dict[str, object]:
    return {"kind": "cron", "expression": expression, **more}


def test_a_cron_is_shared_by_all_schedules_that_have_it() -> None:
    one = compiled(cron("0 9 * * mon"))
    assert compiled(cron(" 0  9 * * MON "), anchor=ANCHOR + timedelta(days=1), key="b") is one
    assert compiled(cron("@daily")) is compiled(cron("0 0 * * *"))


def test_a_cron_is_shared_between_policies_that_make_no_difference_to_it() -> None:
    skip = Dst(gap=DstGap.SKIP)
    assert compiled(cron("0 9 * * *"), skip) is compiled(cron("0 9 * * *"))
    assert compiled(cron("0 * * * *", timezone="Europe/Berlin"), skip) is compiled(
        cron("0 * * * *", timezone="Europe/Berlin")
    )
    assert compiled(cron("0 2 * * *", timezone="Europe/Berlin"), skip) is not compiled(
        cron("0 2 * * *", timezone="Europe/Berlin")
    )


def test_a_cron_with_h_belongs_to_its_schedule() -> None:
    assert compiled(cron("H H * * *"), key="a") is compiled(
        cron("H H * * *"), key="a", anchor=ANCHOR + timedelta(days=1)
    )
    assert compiled(cron("H H * * *"), key="a").after(ANCHOR) != compiled(cron("H H * * *"), key="b").after(
        ANCHOR
    )


def test_intervals_and_rules_are_shared_by_anchor_whatever_the_schedule() -> None:
    interval: dict[str, object] = {"kind": "interval", "minutes": 5}
    rule: dict[str, object] = {"kind": "rrule", "rule": "FREQ=DAILY"}
    for document in (interval, rule):
        assert compiled(document, key="a") is compiled(document, key="b")
        assert compiled(document) is not compiled(document, anchor=ANCHOR + timedelta(seconds=1))
    assert compiled(interval) is compiled({"kind": "interval", "seconds": 300, "timezone": "Europe/Berlin"})
    assert compiled(interval, anchor=ANCHOR.astimezone(ZoneInfo("Asia/Tokyo"))).after(ANCHOR) == compiled(
        interval
    ).after(ANCHOR)


@pytest.mark.parametrize(
    "document",
    [
        cron("0 9 * * *"),
        {"kind": "interval", "hours": 1},
        {"kind": "interval", "days": 1},
        {"kind": "rrule", "rule": "FREQ=DAILY"},
    ],
)
def test_a_zone_that_does_not_exist_is_refused_for_every_kind(document: dict[str, object]) -> None:
    with pytest.raises(InvalidError) as caught:
        compiled({**document, "timezone": "Europe/Atlantis"})
    assert caught.value.problems[0].pointer == "/trigger/timezone"


def test_asking_changes_nothing() -> None:
    documents: list[dict[str, object]] = [
        cron("*/7 3 * * *", timezone="Europe/Berlin"),
        {"kind": "interval", "months": 1, "timezone": "Europe/Berlin"},
        {"kind": "rrule", "rule": "FREQ=WEEKLY;BYDAY=MO,FR;BYSETPOS=1", "timezone": "Europe/Berlin"},
    ]
    for document in documents:
        times = compiled(document)
        moments = [ANCHOR + timedelta(days=100 * number) for number in range(30)]
        forwards = [(times.after(at), times.before(at), times.count(ANCHOR, at)) for at in moments]
        backwards = [(times.after(at), times.before(at), times.count(ANCHOR, at)) for at in reversed(moments)]
        assert forwards == backwards[::-1]
