"""Conformance suite for calendars: named per host, not deletable while in use, each change has a revision."""

import asyncio
from typing import Any

import pytest
from tests.conformance.suites.scene import SOMEBODY, Scene

from foliot.model.calendar import CalendarSpec
from foliot.model.errors import CalendarInUseError, InvalidError, NotFoundError
from foliot.model.ids import DEFAULT_HOST_ID


def calendar_of(name: str = "holidays", **fields: Any) -> CalendarSpec:
    return CalendarSpec.parse({"name": name, **fields})


async def put(scene: Scene, name: str = "holidays", **fields: Any) -> None:
    await scene.store.calendars.put(DEFAULT_HOST_ID, calendar_of(name, **fields), SOMEBODY)


class CalendarConformance:
    """Tests for calendars. Fixture: `scene`."""

    async def test_a_calendar_is_read_back_as_it_was_put(self, scene: Scene) -> None:
        spec = calendar_of(
            description="ours",
            timezone="Europe/Berlin",
            days=["2026-12-24", {"from": "2026-12-27", "to": "2026-12-31"}],
            weekdays=[6, 7],
            countries=[{"country": "DE", "subdivision": "BY", "categories": ["public", "catholic"]}],
        )
        made = await scene.store.calendars.put(DEFAULT_HOST_ID, spec, SOMEBODY)
        assert (made.spec, made.host_id, made.updated_by) == (spec, DEFAULT_HOST_ID, SOMEBODY.name)
        assert await scene.store.calendars.get(DEFAULT_HOST_ID, "holidays") == made

    async def test_putting_again_replaces_it_and_keeps_its_identity(self, scene: Scene) -> None:
        calendars = scene.store.calendars
        first = await calendars.put(DEFAULT_HOST_ID, calendar_of(days=["2026-12-24"]), SOMEBODY)
        second = await calendars.put(DEFAULT_HOST_ID, calendar_of(days=["2026-12-25"]), SOMEBODY)
        assert (second.calendar_id, second.created_ts) == (first.calendar_id, first.created_ts)
        assert [each.spec for each in await calendars.list_all(DEFAULT_HOST_ID)] == [second.spec]

    async def test_a_calendar_that_means_nothing_is_not_stored(self, scene: Scene) -> None:
        with pytest.raises(InvalidError):
            await put(scene, countries=[{"country": "Atlantis"}])
        assert await scene.store.calendars.names(DEFAULT_HOST_ID) == frozenset()

    async def test_calendars_are_listed_by_name_a_page_at_a_time(self, scene: Scene) -> None:
        for name in ("c", "a", "b"):
            await put(scene, name)
        calendars = scene.store.calendars
        page = await calendars.list_all(DEFAULT_HOST_ID, limit=2)
        rest = await calendars.list_all(DEFAULT_HOST_ID, limit=2, after_name=page[-1].spec.name)
        assert [[each.spec.name for each in some] for some in (page, rest)] == [["a", "b"], ["c"]]

    async def test_hosts_do_not_see_each_others_calendars(self, scene: Scene) -> None:
        other = await scene.add_host("other")
        calendars = scene.store.calendars
        await put(scene)
        theirs = calendar_of(weekdays=[7])
        await calendars.put(other, theirs, SOMEBODY)
        assert (await calendars.get(other, "holidays")).spec == theirs
        await calendars.delete(DEFAULT_HOST_ID, "holidays", SOMEBODY)
        assert await calendars.names(other) == {"holidays"}
        with pytest.raises(NotFoundError):
            await calendars.get(DEFAULT_HOST_ID, "holidays")

    async def test_a_calendar_in_use_is_not_deleted_and_the_error_says_by_what(self, scene: Scene) -> None:
        other = await scene.add_host("other")
        await put(scene, "ferien \u00fc")
        await put(scene, "unused")
        user = await scene.add("nightly", calendars=["unused too", "ferien \u00fc"])
        await scene.add("theirs", calendars=["unused"], host_id=other)
        await scene.add("plain")
        calendars = scene.store.calendars
        with pytest.raises(CalendarInUseError, match="nightly") as caught:
            await calendars.delete(DEFAULT_HOST_ID, "ferien \u00fc", SOMEBODY)
        assert caught.value.schedules == ("nightly",)
        await calendars.delete(DEFAULT_HOST_ID, "unused", SOMEBODY)
        await scene.delete(user)
        await calendars.delete(DEFAULT_HOST_ID, "ferien \u00fc", SOMEBODY)
        assert await calendars.names(DEFAULT_HOST_ID) == frozenset()

    async def test_deleting_what_is_not_there_says_so(self, scene: Scene) -> None:
        with pytest.raises(NotFoundError):
            await scene.store.calendars.delete(DEFAULT_HOST_ID, "holidays", SOMEBODY)

    async def test_every_change_can_be_told_by_the_revision(self, scene: Scene) -> None:
        calendars = scene.store.calendars
        seen = [await calendars.revision()]
        await put(scene)
        seen.append(await calendars.revision())
        await put(scene, days=["2026-12-24"])
        seen.append(await calendars.revision())
        await calendars.delete(DEFAULT_HOST_ID, "holidays", SOMEBODY)
        seen.append(await calendars.revision())
        assert seen == sorted(set(seen))
        assert await calendars.revision() == seen[-1]

    async def test_changes_at_once_are_all_counted(self, scene: Scene) -> None:
        stores = await scene.stores(4)
        before = await scene.store.calendars.revision()
        await asyncio.gather(
            *(
                store.calendars.put(DEFAULT_HOST_ID, calendar_of(f"c{index % 2}"), SOMEBODY)
                for index, store in enumerate(stores)
            )
        )
        assert await scene.store.calendars.revision() == before + 4

    async def test_a_snapshot_holds_the_calendars_of_all_hosts(self, scene: Scene) -> None:
        other = await scene.add_host("other")
        ours, theirs = calendar_of(days=["2026-12-24"]), calendar_of(weekdays=[7])
        await scene.store.calendars.put(DEFAULT_HOST_ID, ours, SOMEBODY)
        await scene.store.calendars.put(other, theirs, SOMEBODY)
        assert await scene.store.calendars.snapshot() == {
            (DEFAULT_HOST_ID, "holidays"): ours,
            (other, "holidays"): theirs,
        }
