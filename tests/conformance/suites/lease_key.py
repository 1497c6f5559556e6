"""Conformance suite for external leases: a key has one owner at a time, and only until its TTL ends."""

import asyncio
from typing import Protocol

from tests.engine import until

from foliot.scheduler.leases.lease_provider import ExternalLeases

TERM_S = 2.0
"""TTL in tests that wait for its end. Short to wait for, long enough for a busy machine to extend in time."""
WITHIN_S = 60.0
"""Timeout that only prevents a hanging test. No behaviour depends on it."""
EVERY_S = 0.05


class KeyScene(Protocol):
    """Owners on one server. At the start, nobody owns a key."""

    async def owner(self, name: str, *, ttl_s: float = 60.0) -> ExternalLeases: ...

    async def remove(self, key: str) -> None:
        """Delete the key, as an operator could do by hand."""
        ...


class LeaseKeyConformance:
    """Tests for external leases. Fixture: `key_scene`."""

    async def test_the_first_to_ask_owns_a_key_and_others_do_not(self, key_scene: KeyScene) -> None:
        one, two = await key_scene.owner("one"), await key_scene.owner("two")
        assert await one.acquire("a")
        assert not await two.acquire("a")
        assert await one.acquire("a"), "what is ours stays ours"
        assert await two.acquire("b"), "each key is by itself"

    async def test_of_many_that_ask_at_once_one_owns_it(self, key_scene: KeyScene) -> None:
        owners = [await key_scene.owner(f"owner-{n}") for n in range(6)]
        answers = await asyncio.gather(*(owner.acquire("a") for owner in owners))
        assert sorted(answers) == [False] * 5 + [True]

    async def test_extending_says_which_keys_are_still_ours_and_takes_no_others(
        self, key_scene: KeyScene
    ) -> None:
        one, two = await key_scene.owner("one"), await key_scene.owner("two")
        assert await one.extend(()) == frozenset()
        assert await one.acquire("a")
        assert await one.acquire("gone")
        assert await two.acquire("theirs")
        await key_scene.remove("gone")
        assert await one.extend({"a", "gone", "theirs", "never"}) == {"a"}
        assert await two.acquire("gone")
        assert await two.acquire("never")
        assert await two.extend({"theirs"}) == {"theirs"}

    async def test_a_key_that_is_given_up_is_free_at_once_and_only_its_owner_can(
        self, key_scene: KeyScene
    ) -> None:
        one, two = await key_scene.owner("one"), await key_scene.owner("two")
        assert await one.acquire("a")
        await two.give_up("a")
        assert not await two.acquire("a")
        await one.give_up("a")
        assert await two.acquire("a")
        await one.give_up("a")
        assert await two.extend({"a"}) == {"a"}
        await one.give_up("never")

    async def test_a_key_that_is_not_extended_runs_out_and_is_not_brought_back(
        self, key_scene: KeyScene
    ) -> None:
        one, two = await key_scene.owner("one", ttl_s=0.5), await key_scene.owner("two")
        assert await one.acquire("a")
        await until(lambda: two.acquire("a"))
        assert await one.extend({"a"}) == frozenset()
        assert not await one.acquire("a")
        assert await one.acquire("b"), "an owner that was away goes on"

    async def test_a_key_that_is_extended_outlives_its_term(self, key_scene: KeyScene) -> None:
        """A second key with the same TTL, not extended, shows when the TTL has passed."""
        one, idle = await key_scene.owner("one", ttl_s=TERM_S), await key_scene.owner("idle", ttl_s=TERM_S)
        two = await key_scene.owner("two")
        assert await one.acquire("a")
        assert await idle.acquire("b")

        async def has_passed() -> bool:
            assert await one.extend({"a"}) == {"a"}
            return await two.acquire("b")

        await until(has_passed)
        assert not await two.acquire("a")
