"""The registry of kinds: what it finds, and what it refuses."""

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any, ClassVar, Literal

import pytest

from foliot.model import kind as kinds
from foliot.model.kind import TARGETS, TRIGGERS, BaseTrigger, KindError, KindRegistry

HERE = __name__


class LunarTrigger(BaseTrigger):
    """At every full moon."""

    display_name: ClassVar = "Full moon"
    kind: Literal["lunar"] = "lunar"


class NotAKind:
    """A class that is no trigger."""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a registry of triggers with these entry points."""

    def of(**points: str) -> KindRegistry[BaseTrigger]:
        found = EntryPoints(
            EntryPoint(name.rstrip("_"), value, "foliot.triggers") for name, value in points.items()
        )
        monkeypatch.setattr(kinds, "entry_points", lambda group: found.select(group=group))
        return KindRegistry(BaseTrigger, "trigger")

    return of


def test_foliots_own_kinds_are_found_in_their_order() -> None:
    assert list(TRIGGERS) == ["interval", "cron", "once", "rrule", "delay"]
    assert list(TARGETS) == ["function", "http", "event", "celery"]


def test_kinds_of_others_come_after(registry: Any) -> None:
    cron = "foliot.kinds.cron_trigger:CronTrigger"
    assert list(registry(lunar=f"{HERE}:LunarTrigger", cron=cron)) == ["cron", "lunar"]


@pytest.mark.parametrize(
    ("points", "told"),
    [
        ({"lunar": "no.such.module:X"}, "can't be loaded"),
        ({"lunar": f"{HERE}:NoSuchClass"}, "can't be loaded"),
        ({"lunar": f"{HERE}:NotAKind"}, "no subclass of BaseTrigger"),
        ({"lunar": f"{HERE}:HERE"}, "no subclass of BaseTrigger"),
        ({"moon": f"{HERE}:LunarTrigger"}, 'kind: Literal["moon"] = "moon"'),
        ({"lunar": f"{HERE}:LunarTrigger", "lunar_": f"{HERE}:LunarTrigger"}, "defined twice"),
    ],
)
def test_a_wrong_kind_is_refused_by_name(registry: Any, points: dict[str, str], told: str) -> None:
    with pytest.raises(KindError) as caught:
        list(registry(**points))
    assert told in str(caught.value)
    assert f'the trigger kind "{next(iter(points))}"' in str(caught.value)
