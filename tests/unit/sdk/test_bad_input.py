"""What a user may get wrong in code: one clear message that names the field, before anything is stored."""

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from foliot import Foliot, cron, delay, every, once, rrule
from foliot.db.opening import parse_url
from foliot.model.errors import InvalidError, SettingError
from foliot.model.ids import new_id
from foliot.model.schedule import ScheduleSpec
from foliot.planning.admit import admit_new

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def declared(**fields: Any) -> None:
    app = Foliot()

    @app.task
    async def work(region: str = "eu") -> None: ...

    app.schedule("name", work, **({"when": every(hours=1)} | fields))


class Custom:
    """No JSON can be made into this."""


def registered(**options: Any) -> None:
    async def work() -> None: ...

    Foliot().task(**options)(work)


def with_custom() -> None:
    async def work(thing: Custom) -> None: ...

    Foliot().task(work)


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (lambda: cron(""), "expression"),
        (lambda: declared(when=cron("61 * * * *")), "minute"),
        (lambda: declared(when=cron("0 0 30 2 *")), "never fires"),
        (lambda: declared(when=cron("0 0 * * *", tz="Europe/Berlln")), "Europe/Berlin"),
        (lambda: declared(when=rrule("FREQ=SOMETIMES")), "rule"),
        (lambda: every(), "frequency_time"),
        (lambda: every(hours=-1), "hours"),
        (lambda: delay(0), "seconds"),
        (lambda: delay("soon"), "not a duration"),
        (lambda: once("tomorrow"), "datetime with a zone"),  # type: ignore[arg-type]
        (lambda: declared(overlap="sometimes"), "overlap"),
        (lambda: declared(misfire={"policy": "fire_once", "grace": 3}), "misfire.grace"),
        (lambda: declared(args={"regoin": "eu"}), "work takes region"),
        (lambda: declared(colour="red"), "colour"),
        (lambda: declared(target={}), "target"),
        (lambda: declared(retries=1, retry={"max_attempts": 2}), "retries"),
        (lambda: declared(args={"region": "a\0b"}), "NUL"),
        (lambda: declared(labels={"team": "caf\udce9"}), "labels.team"),
        (lambda: registered(retries=-1), "retries"),
        (lambda: registered(retries=200), "max_attempts"),
        (lambda: registered(timeout=[1]), "not a duration"),
        (lambda: Foliot().task(functools.partial(print)), "not a function"),
        (with_custom, "no schedule can give"),
    ],
)
def test_a_mistake_is_told_by_its_field(mistake: Callable[[], object], told: str) -> None:
    with pytest.raises(InvalidError) as caught:
        mistake()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_an_instant_at_the_ends_of_the_calendar_is_refused(at: str) -> None:
    document = {
        "name": "x",
        "trigger": {"kind": "once", "at": at},
        "target": {"kind": "function", "name": "work"},
    }
    with pytest.raises(InvalidError):
        admit_new(ScheduleSpec.parse(document), new_id(), NOW)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("nonsense", "not a database URL"),
        ("postgresql://user:hidden@host:port/db", "not a database URL"),
        ("mysql://host/db", "mysql"),
        ("postgresql://host", "names no database"),
        ("sqlite://", "names no database"),
        (
            "postgresql://host/db?keepalives=1",
            "unsupported parameter keepalives; supported: ",
        ),
        ("sqlite:///foliot.db?mode=ro", "mode"),
    ],
)
def test_a_wrong_database_url_is_told_without_its_password(url: str, told: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_url(url)
    assert told in str(caught.value)
    assert "hidden" not in str(caught.value)
