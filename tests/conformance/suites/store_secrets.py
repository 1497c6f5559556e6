"""Conformance suite for secrets and cluster keys: stored encrypted, readable only for their own host."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import select, update
from tests.conformance.suites.scene import Scene

from foliot.access import secrets_sql as secrets_module
from foliot.access.cipher import Cipher
from foliot.access.secrets import MAX_LENGTH, UnreadableSecretError
from foliot.access.secrets_sql import Secrets, callback_key
from foliot.db.tables.access import secret_t
from foliot.model.errors import InvalidError, NoSecretKeyError, NotFoundError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.planning.change import Author

OLD = "the old key; thirty-two or more characters"
NEW = "the new key; thirty-two or more characters"
AUTHOR = Author("somebody")
OTHER_HOST = UUID("00000000-0000-7000-8000-000000000002")


def secrets_of(scene: Scene, keys: str = OLD) -> Secrets:
    return Secrets(scene.store.database, Cipher.from_keys(keys))


class SecretsConformance:
    """Tests for secrets. Fixture: `scene`."""

    async def test_a_secret_is_read_back_and_never_stored_in_the_clear(self, scene: Scene) -> None:
        secrets = secrets_of(scene)
        await secrets.set(DEFAULT_HOST_ID, "token", "geheim \0 ✓", AUTHOR)
        assert await secrets.values(DEFAULT_HOST_ID, ["token", "absent"]) == {"token": "geheim \0 ✓"}
        [row] = await scene.rows(select(secret_t))
        assert "geheim" not in repr(row)
        assert row.updated_by == "somebody"
        # The statement reads the clock once per column.
        assert abs(row.created_ts - row.updated_ts) < timedelta(seconds=1)

    async def test_setting_again_replaces_the_value_and_keeps_the_creation(self, scene: Scene) -> None:
        secrets = secrets_of(scene)
        await secrets.set(DEFAULT_HOST_ID, "token", "first", AUTHOR)
        [before] = await scene.rows(select(secret_t))
        await secrets.set(DEFAULT_HOST_ID, "token", "second", Author("other"))
        [after] = await scene.rows(select(secret_t))
        assert await secrets.values(DEFAULT_HOST_ID, ["token"]) == {"token": "second"}
        assert (after.created_ts, after.updated_by) == (before.created_ts, "other")
        assert after.updated_ts >= before.updated_ts

    async def test_hosts_do_not_see_each_others_secrets(self, scene: Scene) -> None:
        secrets = secrets_of(scene)
        await secrets.set(DEFAULT_HOST_ID, "token", "mine", AUTHOR)
        assert await secrets.values(OTHER_HOST, ["token"]) == {}
        assert await secrets.names(OTHER_HOST) == []
        with pytest.raises(NotFoundError):
            await secrets.delete(OTHER_HOST, "token", AUTHOR)
        await secrets.set(OTHER_HOST, "token", "theirs", AUTHOR)
        assert await secrets.values(DEFAULT_HOST_ID, ["token"]) == {"token": "mine"}

    async def test_names_are_listed_in_order_and_by_the_page(self, scene: Scene) -> None:
        secrets = secrets_of(scene)
        for name in ("c", "a", "b"):
            await secrets.set(DEFAULT_HOST_ID, name, "value", AUTHOR)
        first = await secrets.names(DEFAULT_HOST_ID, limit=2)
        rest = await secrets.names(DEFAULT_HOST_ID, limit=2, after_name=first[-1].name)
        assert [each.name for each in (*first, *rest)] == ["a", "b", "c"]
        [row] = await scene.rows(select(secret_t.c.updated_ts).where(secret_t.c.name == "c"))
        assert rest[0].updated_ts == row.updated_ts

    async def test_a_deleted_secret_is_gone(self, scene: Scene) -> None:
        secrets = secrets_of(scene)
        await secrets.set(DEFAULT_HOST_ID, "token", "value", AUTHOR)
        await secrets.delete(DEFAULT_HOST_ID, "token", AUTHOR)
        assert await secrets.values(DEFAULT_HOST_ID, ["token"]) == {}
        with pytest.raises(NotFoundError):
            await secrets.delete(DEFAULT_HOST_ID, "token", AUTHOR)

    @pytest.mark.parametrize("name", ["", "1st", "a b", "a/b", "a" * 127, "ä", "a\n"])
    async def test_a_name_that_no_reference_could_have_is_refused(self, scene: Scene, name: str) -> None:
        with pytest.raises(InvalidError) as caught:
            await secrets_of(scene).set(DEFAULT_HOST_ID, name, "value", AUTHOR)
        assert caught.value.problems[0].pointer == "/name"

    @pytest.mark.parametrize("value", ["", "x" * (MAX_LENGTH + 1), "\ud800"])
    async def test_a_value_that_can_not_be_kept_is_refused(self, scene: Scene, value: str) -> None:
        with pytest.raises(InvalidError) as caught:
            await secrets_of(scene).set(DEFAULT_HOST_ID, "token", value, AUTHOR)
        assert caught.value.problems[0].pointer == "/value"
        assert await scene.rows(select(secret_t)) == []

    async def test_without_a_key_nothing_is_stored_and_nothing_is_read(self, scene: Scene) -> None:
        await secrets_of(scene).set(DEFAULT_HOST_ID, "token", "value", AUTHOR)
        keyless = Secrets(scene.store.database, None)
        with pytest.raises(NoSecretKeyError, match="FOLIOT_SECRET_KEY"):
            await keyless.set(DEFAULT_HOST_ID, "other", "value", AUTHOR)
        with pytest.raises(NoSecretKeyError):
            await keyless.rotate(AUTHOR)
        with pytest.raises(UnreadableSecretError):
            await keyless.values(DEFAULT_HOST_ID, ["token"])
        assert [each.name for each in await keyless.names(DEFAULT_HOST_ID)] == ["token"]

    async def test_rotation_moves_every_secret_to_the_first_key(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(secrets_module, "BATCH", 2)
        stored = {
            (host, f"s{n}"): f"value {host} {n}" for host in (OTHER_HOST, DEFAULT_HOST_ID) for n in range(4)
        }
        for (host, name), value in stored.items():
            await secrets_of(scene).set(host, name, value, AUTHOR)
        both = secrets_of(scene, f"{NEW},{OLD}")
        await both.set(DEFAULT_HOST_ID, "recent", "value", AUTHOR)
        [before] = await scene.rows(select(secret_t.c.updated_ts).where(secret_t.c.name == "recent"))
        assert await both.rotate(AUTHOR) == len(stored)
        assert await both.rotate(AUTHOR) == 0
        new = secrets_of(scene, NEW)
        for (host, name), value in stored.items():
            assert await new.values(host, [name]) == {name: value}
        [after] = await scene.rows(select(secret_t.c.updated_ts).where(secret_t.c.name == "recent"))
        assert after == before, "a rotation is not a change of the secret"

    async def test_a_secret_under_a_lost_key_is_named(self, scene: Scene) -> None:
        await secrets_of(scene).set(DEFAULT_HOST_ID, "token", "value", AUTHOR)
        new = secrets_of(scene, NEW)
        for reading in (new.values(DEFAULT_HOST_ID, ["token"]), new.rotate(AUTHOR)):
            with pytest.raises(UnreadableSecretError) as caught:
                await reading
            assert caught.value.name == "token"

    async def test_what_was_tampered_with_is_not_read(self, scene: Scene) -> None:
        secrets = secrets_of(scene)
        await secrets.set(DEFAULT_HOST_ID, "token", "value", AUTHOR)
        await scene.execute(update(secret_t).values(value="ü" + "A" * 100))
        with pytest.raises(UnreadableSecretError):
            await secrets.values(DEFAULT_HOST_ID, ["token"])

    async def test_all_instances_get_the_same_callback_key_whoever_makes_it(self, scene: Scene) -> None:
        others = [await scene.open_another() for _ in range(4)]
        keys = await asyncio.gather(*(callback_key(each.database) for each in others))
        assert len(set(keys)) == 1
        assert len(keys[0]) == 32
        assert await callback_key(scene.store.database) == keys[0]
