"""Hosts, keys, sessions and links in the store, over both databases."""

import asyncio
import json
import re
from collections.abc import Awaitable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event, select, update
from tests.conformance.suites.scene import STALE, Scene

from foliot.access.hosts import Hosts
from foliot.access.keys import ApiKey, Purpose, hash_of, is_hash_of, session_credential
from foliot.access.keys_sql import ApiKeys, KeyRecord, MadeKey
from foliot.access.principal import Role
from foliot.access.sessions import LINK_LIFETIME_S, SESSION_LIFETIME_S, Holder, Sessions
from foliot.db.dialect import Pool
from foliot.db.tables.access import api_key_t, audit_t, host_t, session_t
from foliot.model.errors import InvalidError, NameTakenError, NotFoundError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.planning.change import Author

AUTHOR = Author("ann", credential="operator", request_id="r1", address="192.0.2.1")
MINUTE = timedelta(minutes=1)
OPERATOR = Holder(
    host_id=DEFAULT_HOST_ID, key_id="op:0123", name="operator", role=Role.ADMIN, is_operator=True
)
NAMES_REFUSED = ["", " ", "a ", " a", "a\nb", "a\0", "a\u200b", "\ud800", "x" * 127]


def keys_of(scene: Scene) -> ApiKeys:
    return ApiKeys(scene.store.database)


def sessions_of(scene: Scene) -> Sessions:
    return Sessions(scene.store.database)


def hosts_of(scene: Scene) -> Hosts:
    return Hosts(scene.store.database)


async def make_key(
    scene: Scene, name: str = "ci", *, host_id: UUID = DEFAULT_HOST_ID, role: Role = Role.EDITOR
) -> MadeKey:
    return await keys_of(scene).create(host_id, name, role, None, AUTHOR)


def holder_of(key: KeyRecord) -> Holder:
    return Holder(host_id=key.host_id, key_id=key.key_id, name=key.name, role=key.role)


async def expire(scene: Scene, key: KeyRecord) -> None:
    """As if its time had come."""
    past = await scene.now() - MINUTE
    await scene.execute(update(api_key_t).where(api_key_t.c.key_id == key.key_id).values(expires_ts=past))


async def audited(scene: Scene) -> list[tuple[Any, ...]]:
    """What was done, by its name: of a clock that stands still there is no order."""
    columns = (audit_t.c.action, audit_t.c.resource_id, audit_t.c.actor, audit_t.c.credential)
    return sorted(tuple(row) for row in await scene.rows(select(*columns)))


async def everything_stored(scene: Scene) -> str:
    tables = (api_key_t, session_t, audit_t)
    return json.dumps([[str(row) for row in await scene.rows(select(table))] for table in tables])


class TestHosts:
    async def test_a_host_is_made_and_read_back(self, scene: Scene) -> None:
        made = await hosts_of(scene).create("pay", AUTHOR)
        assert made.host_id.version == 7
        assert await hosts_of(scene).get(made.host_id) == made
        assert await hosts_of(scene).exists(made.host_id)
        assert await audited(scene) == [("host.created", str(made.host_id), "ann", "operator")]

    async def test_a_taken_name_is_refused_and_nothing_is_written(self, scene: Scene) -> None:
        await hosts_of(scene).create("pay", AUTHOR)
        for name in ("pay", "default"):
            with pytest.raises(NameTakenError, match=f'a host named "{name}" exists'):
                await hosts_of(scene).create(name, AUTHOR)
        assert len(await scene.rows(select(host_t))) == 2
        assert len(await audited(scene)) == 1

    async def test_of_many_who_want_a_name_at_once_one_gets_it(self, scene: Scene) -> None:
        stores = await scene.stores(4)
        made = await asyncio.gather(
            *(Hosts(store.database).create("pay", AUTHOR) for store in stores), return_exceptions=True
        )
        assert sorted(type(each).__name__ for each in made) == ["HostRecord"] + ["NameTakenError"] * 3

    async def test_making_a_host_again_by_the_same_id_gives_the_first(self, scene: Scene) -> None:
        host_id = UUID("01900000-0000-7000-8000-00000000abcd")
        first = await hosts_of(scene).create("pay", AUTHOR, host_id=host_id)
        assert first.host_id == host_id
        assert await hosts_of(scene).create("pay", AUTHOR, host_id=host_id) == first
        assert len(await audited(scene)) == 1
        with pytest.raises(NameTakenError):
            await hosts_of(scene).create("default", AUTHOR, host_id=host_id)

    @pytest.mark.parametrize("name", NAMES_REFUSED)
    async def test_a_name_that_can_not_be_read_is_refused(self, scene: Scene, name: str) -> None:
        with pytest.raises(InvalidError) as caught:
            await hosts_of(scene).create(name, AUTHOR)
        assert caught.value.problems[0].pointer == "/name"

    async def test_hosts_are_listed_by_name_and_by_the_page(self, scene: Scene) -> None:
        for name in ("c", "a", "b"):
            await hosts_of(scene).create(name, AUTHOR)
        first = await hosts_of(scene).page(limit=2)
        rest = await hosts_of(scene).page(after_name=first[-1].name, limit=5)
        assert [host.name for host in (*first, *rest)] == ["a", "b", "c", "default"]

    async def test_a_host_that_does_not_exist_is_not_found(self, scene: Scene) -> None:
        missing = UUID("01900000-0000-7000-8000-00000000ffff")
        assert not await hosts_of(scene).exists(missing)
        assert await hosts_of(scene).exists(DEFAULT_HOST_ID)
        with pytest.raises(NotFoundError):
            await hosts_of(scene).get(missing)


class TestKeys:
    async def test_a_key_is_shown_once_and_found_by_its_id(self, scene: Scene) -> None:
        made = await make_key(scene)
        key = ApiKey.parse(made.text)
        assert key is not None
        found = await keys_of(scene).find(key.key_id)
        assert found is not None
        assert found.record == made.record
        assert found.is_live
        assert is_hash_of(found.secret_hash, key.secret)
        assert (found.record.name, found.record.role, found.record.host_id) == (
            "ci",
            Role.EDITOR,
            DEFAULT_HOST_ID,
        )
        assert (found.record.created_by, found.record.last_used_ts) == ("ann", None)

    async def test_neither_the_key_nor_its_hash_gets_into_the_audit_and_the_key_nowhere(
        self, scene: Scene
    ) -> None:
        made = await make_key(scene)
        await keys_of(scene).revoke(made.record.key_id, DEFAULT_HOST_ID, AUTHOR)
        key = ApiKey.parse(made.text)
        assert key is not None
        assert key.secret not in await everything_stored(scene)
        rows = await scene.rows(select(audit_t).order_by(audit_t.c.action))
        assert [(row.action, row.resource_id) for row in rows] == [
            ("key.created", key.key_id),
            ("key.revoked", key.key_id),
        ]
        assert rows[0].after == {"name": "ci", "role": "editor", "expires_ts": None}
        assert not any(hash_of(key.secret) in str(row) for row in rows)

    async def test_a_key_that_nobody_made_is_not_found(self, scene: Scene) -> None:
        assert await keys_of(scene).find("0" * 16) is None

    async def test_a_key_for_a_host_that_does_not_exist_is_refused(self, scene: Scene) -> None:
        with pytest.raises(NotFoundError):
            await make_key(scene, host_id=UUID("01900000-0000-7000-8000-00000000ffff"))
        assert await scene.rows(select(api_key_t)) == []

    @pytest.mark.parametrize("name", NAMES_REFUSED)
    async def test_a_name_that_can_not_be_read_is_refused(self, scene: Scene, name: str) -> None:
        with pytest.raises(InvalidError) as caught:
            await make_key(scene, name)
        assert caught.value.problems[0].pointer == "/name"
        assert await scene.rows(select(api_key_t)) == []

    async def test_a_name_may_be_long_and_in_any_script(self, scene: Scene) -> None:
        assert (await make_key(scene, "键" * 126)).record.name == "键" * 126

    async def test_an_end_in_the_past_is_refused(self, scene: Scene) -> None:
        now = await scene.now()
        naive = (now + MINUTE).replace(tzinfo=None)
        for expires_ts in (now - MINUTE, now, naive, datetime(1, 1, 1, tzinfo=UTC)):
            with pytest.raises(InvalidError) as caught:
                await keys_of(scene).create(DEFAULT_HOST_ID, "ci", Role.VIEWER, expires_ts, AUTHOR)
            assert caught.value.problems[0].pointer == "/expires_ts"
        assert await scene.rows(select(api_key_t)) == []

    async def test_a_key_holds_until_its_end(self, scene: Scene) -> None:
        end = (await scene.now() + MINUTE).astimezone(timezone(timedelta(hours=5)))
        made = await keys_of(scene).create(DEFAULT_HOST_ID, "ci", Role.VIEWER, end, AUTHOR)
        assert made.record.expires_ts == end
        found = await keys_of(scene).find(made.record.key_id)
        assert found is not None
        assert found.is_live
        await expire(scene, made.record)
        found = await keys_of(scene).find(made.record.key_id)
        assert found is not None
        assert not found.is_live

    async def test_a_revoked_key_is_over_at_once_and_stays_as_it_was_revoked(self, scene: Scene) -> None:
        made = await make_key(scene)
        other = await make_key(scene)
        revoked = await keys_of(scene).revoke(made.record.key_id, DEFAULT_HOST_ID, AUTHOR)
        assert revoked == replace(made.record, revoked_ts=revoked.revoked_ts)
        assert revoked.revoked_ts is not None
        found = await keys_of(scene).find(made.record.key_id)
        assert found is not None
        assert not found.is_live
        again = await keys_of(scene).revoke(made.record.key_id, DEFAULT_HOST_ID, Author("bob"))
        assert again == revoked
        assert [action for action, *_ in await audited(scene)].count("key.revoked") == 1
        untouched = await keys_of(scene).find(other.record.key_id)
        assert untouched is not None
        assert untouched.is_live

    async def test_a_key_of_another_host_can_not_be_revoked(self, scene: Scene) -> None:
        other = await scene.add_host("other")
        made = await make_key(scene)
        for key_id in (made.record.key_id, "0" * 16, "", "a\0b", "x" * 500, "\ud800"):
            with pytest.raises(NotFoundError):
                await keys_of(scene).revoke(key_id, other, AUTHOR)
        found = await keys_of(scene).find(made.record.key_id)
        assert found is not None
        assert found.is_live

    async def test_hosts_list_their_own_keys_by_the_page_revoked_ones_too(self, scene: Scene) -> None:
        other = await scene.add_host("other")
        await make_key(scene, host_id=other)
        mine = [(await make_key(scene)).record for _ in range(5)]
        await keys_of(scene).revoke(mine[0].key_id, DEFAULT_HOST_ID, AUTHOR)
        listed: list[KeyRecord] = []
        while page := await keys_of(scene).page(
            DEFAULT_HOST_ID, after=listed[-1].key_id if listed else "", limit=2
        ):
            assert len(page) <= 2
            listed += page
        assert [key.key_id for key in listed] == sorted(key.key_id for key in mine)
        assert [key.key_id for key in listed if key.revoked_ts] == [mine[0].key_id]

    async def test_the_last_use_is_written_at_most_once_a_minute(self, scene: Scene) -> None:
        key_id = (await make_key(scene)).record.key_id
        keys = keys_of(scene)

        async def last_used() -> tuple[datetime | None, bool]:
            found = await keys.find(key_id)
            assert found is not None
            return found.record.last_used_ts, found.is_touch_due

        assert await last_used() == (None, True)
        before = await scene.now()
        await keys.touch(key_id)
        first, is_due = await last_used()
        assert first is not None
        assert before <= first <= await scene.now()
        assert not is_due
        nearly = first - timedelta(seconds=55)
        await scene.execute(update(api_key_t).values(last_used_ts=nearly))
        await keys.touch(key_id)
        assert await last_used() == (nearly, False)
        await scene.execute(update(api_key_t).values(last_used_ts=first - timedelta(seconds=61)))
        assert (await last_used())[1]
        await keys.touch(key_id)
        again, is_due = await last_used()
        assert again is not None
        assert again >= first
        assert not is_due

    async def test_whether_any_key_exists_counts_only_those_that_let_somebody_in(self, scene: Scene) -> None:
        keys = keys_of(scene)
        assert not await keys.any_exist()
        first, second = [(await make_key(scene)).record for _ in range(2)]
        assert await keys.any_exist()
        await keys.revoke(first.key_id, DEFAULT_HOST_ID, AUTHOR)
        assert await keys.any_exist()
        await expire(scene, second)
        assert not await keys.any_exist()


class TestSessions:
    async def test_a_session_is_found_by_its_token_and_only_its_hash_is_stored(self, scene: Scene) -> None:
        key = (await make_key(scene)).record
        before = await scene.now()
        made = await sessions_of(scene).make_session(holder_of(key), AUTHOR)
        assert await sessions_of(scene).find(made.token) == made.session
        assert made.session.holder == holder_of(key)
        assert made.session.credential == session_credential(hash_of(made.token))
        assert made.session.expires_ts - made.session.created_ts == timedelta(days=7)
        assert SESSION_LIFETIME_S == 7 * 86400
        assert made.session.created_ts >= before
        assert made.token not in await everything_stored(scene)

    async def test_signing_in_and_out_is_audited_under_the_holders_name(self, scene: Scene) -> None:
        key = (await make_key(scene, "ann's laptop")).record
        made = await sessions_of(scene).make_session(holder_of(key), Author(address="192.0.2.1"))
        assert await sessions_of(scene).end(made.token, Author(credential=made.session.credential))
        mine = made.session.credential
        assert (await audited(scene))[1:] == [
            ("session.created", mine, "ann's laptop", mine),
            ("session.ended", mine, "ann's laptop", mine),
        ]
        assert hash_of(made.token) not in str(await scene.rows(select(audit_t)))

    async def test_a_session_that_was_ended_is_over(self, scene: Scene) -> None:
        sessions = sessions_of(scene)
        made, other = [await sessions.make_session(OPERATOR, AUTHOR) for _ in range(2)]
        assert await sessions.end(made.token, AUTHOR)
        assert await sessions.find(made.token) is None
        assert not await sessions.end(made.token, AUTHOR)
        assert await sessions.find(other.token) == other.session

    async def test_a_session_runs_out(self, scene: Scene) -> None:
        made = await sessions_of(scene).make_session(OPERATOR, AUTHOR, lifetime_s=STALE)
        assert await sessions_of(scene).find(made.token) is None

    async def test_a_session_ends_with_its_key(self, scene: Scene) -> None:
        sessions = sessions_of(scene)
        expiring, revoked, kept = [(await make_key(scene)).record for _ in range(3)]
        made = [await sessions.make_session(holder_of(key), AUTHOR) for key in (expiring, revoked, kept)]
        await expire(scene, expiring)
        await keys_of(scene).revoke(revoked.key_id, DEFAULT_HOST_ID, AUTHOR)
        found = [await sessions.find(each.token) for each in made]
        assert found == [None, None, made[2].session]

    async def test_a_session_of_a_key_that_is_not_there_is_none(self, scene: Scene) -> None:
        holder = replace(OPERATOR, is_operator=False, key_id="0" * 16)
        made = await sessions_of(scene).make_session(holder, AUTHOR)
        assert await sessions_of(scene).find(made.token) is None

    @pytest.mark.parametrize("token", ["", "fls_", "x" * 10_000, "ü", "\0", "\ud800", "fls_" + "x" * 43])
    async def test_what_is_no_session_is_not_found(self, scene: Scene, token: str) -> None:
        await sessions_of(scene).make_session(OPERATOR, AUTHOR)
        assert await sessions_of(scene).find(token) is None
        assert not await sessions_of(scene).end(token, AUTHOR)
        assert await sessions_of(scene).use_link(token, AUTHOR) is None

    async def test_who_has_read_the_database_has_no_session(self, scene: Scene) -> None:
        made = await sessions_of(scene).make_session(OPERATOR, AUTHOR)
        [row] = await scene.rows(select(session_t))
        for token in (row.secret_hash, f"fls_{row.secret_hash[:43]}", made.session.credential):
            assert await sessions_of(scene).find(token) is None


class TestLinks:
    async def test_a_link_signs_in_once(self, scene: Scene) -> None:
        sessions = sessions_of(scene)
        link = (await sessions.make_link(OPERATOR)).token
        assert link not in await everything_stored(scene)
        made = await sessions.use_link(link, Author(address="192.0.2.1"))
        assert made is not None
        assert made.session.holder == OPERATOR
        assert await sessions.find(made.token) == made.session
        assert await sessions.use_link(link, AUTHOR) is None
        assert [each[:3] for each in await audited(scene)] == [
            ("session.created", made.session.credential, "operator")
        ]

    async def test_a_link_lasts_half_a_day(self, scene: Scene) -> None:
        await sessions_of(scene).make_link(OPERATOR)
        [row] = await scene.rows(select(session_t))
        assert row.expires_ts - row.created_ts == timedelta(minutes=15) == timedelta(seconds=LINK_LIFETIME_S)

    async def test_of_twenty_who_use_a_link_at_once_one_gets_in(self, scene: Scene) -> None:
        link = (await sessions_of(scene).make_link(OPERATOR)).token
        stores = await scene.stores(4)
        tries = await asyncio.gather(
            *(Sessions(store.database).use_link(link, AUTHOR) for store in stores for _ in range(5))
        )
        [won] = [each for each in tries if each is not None]
        assert await sessions_of(scene).find(won.token) == won.session
        assert len(await scene.rows(select(session_t))) == 1
        assert len(await audited(scene)) == 1

    async def test_a_link_is_no_session_and_a_session_no_link(self, scene: Scene) -> None:
        sessions = sessions_of(scene)
        link = (await sessions.make_link(OPERATOR)).token
        made = await sessions.make_session(OPERATOR, AUTHOR)
        assert await sessions.find(link) is None
        assert not await sessions.end(link, AUTHOR)
        assert await sessions.use_link(made.token, AUTHOR) is None
        assert await sessions.use_link(link, AUTHOR) is not None
        assert await sessions.find(made.token) == made.session

    async def test_a_kind_is_told_by_its_row_as_well(self, scene: Scene) -> None:
        """Were the forms of tokens ever to be mixed up, a link would still sign nobody in for long."""
        sessions = sessions_of(scene)
        link = (await sessions.make_link(OPERATOR)).token
        made = await sessions.make_session(OPERATOR, AUTHOR)
        session_like, link_like = Purpose.SESSION.new_token(), Purpose.LINK.new_token()
        for token, other in ((link, session_like), (made.token, link_like)):
            await scene.execute(
                update(session_t)
                .where(session_t.c.secret_hash == hash_of(token))
                .values(secret_hash=hash_of(other))
            )
        assert await sessions.find(session_like) is None
        assert not await sessions.end(session_like, AUTHOR)
        assert await sessions.use_link(link_like, AUTHOR) is None

    async def test_a_link_that_has_run_out_signs_nobody_in(self, scene: Scene) -> None:
        link = (await sessions_of(scene).make_link(OPERATOR, lifetime_s=STALE)).token
        assert await sessions_of(scene).use_link(link, AUTHOR) is None

    async def test_a_link_of_a_key_that_is_over_signs_nobody_in(self, scene: Scene) -> None:
        key = (await make_key(scene)).record
        link = (await sessions_of(scene).make_link(holder_of(key))).token
        await keys_of(scene).revoke(key.key_id, DEFAULT_HOST_ID, AUTHOR)
        assert await sessions_of(scene).use_link(link, AUTHOR) is None

    async def test_a_session_from_a_link_ends_with_the_links_key(self, scene: Scene) -> None:
        key = (await make_key(scene)).record
        made = await sessions_of(scene).use_link(
            (await sessions_of(scene).make_link(holder_of(key))).token, AUTHOR
        )
        assert made is not None
        await keys_of(scene).revoke(key.key_id, DEFAULT_HOST_ID, AUTHOR)
        assert await sessions_of(scene).find(made.token) is None


class TestPruning:
    async def test_what_has_run_out_is_removed_in_bounded_steps_and_nothing_else(self, scene: Scene) -> None:
        sessions = sessions_of(scene)
        for _ in range(3):
            await sessions.make_session(OPERATOR, AUTHOR, lifetime_s=STALE)
            await sessions.make_link(OPERATOR, lifetime_s=STALE)
        made = await sessions.make_session(OPERATOR, AUTHOR)
        link = (await sessions.make_link(OPERATOR)).token
        assert [await sessions.prune(limit=4) for _ in range(3)] == [4, 2, 0]
        kept = {row.secret_hash for row in await scene.rows(select(session_t))}
        assert kept == {hash_of(made.token), hash_of(link)}


# --- what a request costs ------------------------------------------------------------------------------


WHOLE_TABLE = r"Seq Scan|SCAN (?!CONSTANT ROW)"


async def statements_of(scene: Scene, act: Awaitable[Any]) -> list[tuple[str, Any]]:
    issued: list[tuple[str, Any]] = []

    def listener(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if re.match(r"\s*(SELECT|UPDATE|DELETE)", statement):
            issued.append((statement, parameters))

    engine = scene.store.database.engine(Pool.API).sync_engine
    event.listen(engine, "before_cursor_execute", listener)
    try:
        await act
    finally:
        event.remove(engine, "before_cursor_execute", listener)
    return issued


async def plan_of(scene: Scene, statement: str, parameters: Any) -> str:
    """Without reading whole tables where that can be avoided at all: these here are too small to matter."""
    is_postgres = scene.store.database.dialect.name == "postgresql"
    async with scene.store.database.engine(Pool.API).connect() as connection:
        if is_postgres:
            for kind in ("seqscan", "bitmapscan", "sort"):
                await connection.exec_driver_sql(f"SET LOCAL enable_{kind} = off")
        command = "EXPLAIN" if is_postgres else "EXPLAIN QUERY PLAN"
        rows = await connection.exec_driver_sql(f"{command} {statement}", parameters)
        return "\n".join(str(row[-1]) for row in rows)


class TestCost:
    """Each of these is done for every request, or over a table that grows."""

    async def test_a_request_by_key_or_session_is_one_statement_by_a_primary_key(self, scene: Scene) -> None:
        made = await make_key(scene)
        session = await sessions_of(scene).make_session(holder_of(made.record), AUTHOR)
        for act in (keys_of(scene).find(made.record.key_id), sessions_of(scene).find(session.token)):
            [(statement, parameters)] = await statements_of(scene, act)
            plan = await plan_of(scene, statement, parameters)
            assert not re.search(WHOLE_TABLE, plan), plan

    async def test_lists_and_pruning_go_by_their_indexes(self, scene: Scene) -> None:
        for act, index in (
            (keys_of(scene).page(DEFAULT_HOST_ID, after="0" * 16), "idx_api_key_host"),
            (sessions_of(scene).prune(), "idx_session_expires"),
        ):
            [(statement, parameters)] = await statements_of(scene, act)
            plan = await plan_of(scene, statement, parameters)
            assert not re.search(WHOLE_TABLE + "|Sort|TEMP B-TREE", plan), plan
            assert index in plan, plan
