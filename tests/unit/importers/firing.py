"""When an imported schedule fires, and when it should, found by trying every day."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from foliot.importers.import_result import Item
from foliot.model.ids import new_id
from foliot.model.schedule import ScheduleSpec
from foliot.planning.admit import admit_new


def fires_of(imported: Item, now: datetime, count: int) -> list[datetime]:
    """The first times of a schedule that is made now; what would be refused raises."""
    cadence = admit_new(ScheduleSpec.parse(imported.document), new_id(), now)
    fires = [now]
    while len(fires) <= count:
        at = cadence.recurrence.after(fires[-1])
        assert at is not None
        fires.append(at)
    return fires[1:]


def walked(
    allowed: Mapping[str, Collection[int]], after: datetime, count: int, *, either_day: bool = False
) -> list[datetime]:
    """The first times after an instant, within nine years, at which all fields match; 0 is Sunday."""
    times = sorted((hour, minute) for hour in allowed["hour"] for minute in allowed["minute"])
    midnight = after.replace(hour=0, minute=0, second=0, microsecond=0)
    fires: list[datetime] = []
    for offset in range(9 * 366):
        day = midnight + timedelta(days=offset)
        matches = (day.day in allowed["day_of_month"], day.isoweekday() % 7 in allowed["day_of_week"])
        if day.month in allowed["month_of_year"] and (any if either_day else all)(matches):
            on_day = (day.replace(hour=hour, minute=minute) for hour, minute in times)
            fires += [each for each in on_day if each > after]
        if len(fires) >= count:
            break
    return fires[:count]
