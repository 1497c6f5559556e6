"""Who gets in, by what they show; and who does not, whatever they show."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import jwt
import pytest
from sqlalchemy import event
from starlette.datastructures import Headers

from foliot.access.hosts import Hosts
from foliot.access.jwt_tokens import TokenVerifier
from foliot.access.keys import ApiKey, OperatorKey, Purpose, hash_of
from foliot.access.keys_sql import ApiKeys, MadeKey
from foliot.access.principal import CredentialKind, Principal, Role
from foliot.access.sessions import MadeSession, Sessions
from foliot.api.access.credentials import (
    HOST_HOLDS_S,
    Authenticator,
    NotSignableError,
    csrf_token,
    is_csrf_valid,
    operator_principal,
    refuses_cross_site,
)
from foliot.db.dialect import Pool
from foliot.db.migrate import upgrade
from foliot.instance.store import SqlStore, open_store
from foliot.model.errors import DatabaseUnreachableError, UnauthenticatedError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.planning.change import Author
from foliot.timing.clock import VirtualClock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OPERATOR_KEY = "the operator's key; thirty-two or more"
JWT_SECRET = "a shared secret of thirty-two bytes, or more"
SOMEBODY = Author("somebody")
MISSING_HOST = UUID("01900000-0000-7000-8000-00000000ffff")


@dataclass
class Door:
    """An authenticator over a store of its own, and what is needed to make credentials for it."""

    store: SqlStore
    clock: VirtualClock
    keys: ApiKeys
    sessions: Sessions
    hosts: Hosts
    authenticator: Authenticator

    async def make_key(self, role: Role = Role.EDITOR, expires_ts: datetime | None = None) -> MadeKey:
        return await self.keys.create(DEFAULT_HOST_ID, "ci", role, expires_ts, SOMEBODY)

    async def sign_in(self, bearer: str) -> MadeSession:
        principal = await self.by_bearer(bearer)
        return await self.sessions.make_session(self.authenticator.holder_of(principal), SOMEBODY)

    async def by_bearer(self, text: str, cookie: str | None = None) -> Principal:
        return await self.authenticator.authenticate(f"Bearer {text}", cookie)

    async def by_cookie(self, text: str) -> Principal:
        return await self.authenticator.authenticate(None, text)

    async def refuses(self, authorization: str | None, cookie: str | None = None) -> bool:
        try:
            await self.authenticator.authenticate(authorization, cookie)
        except UnauthenticatedError:
            return True
        return False

    def statements(self) -> list[str]:
        """All that are issued from now on."""
        issued: list[str] = []
        event.listen(
            self.store.database.engine(Pool.API).sync_engine,
            "before_cursor_execute",
            lambda _conn, _cursor, statement, *_: issued.append(statement),
        )
        return issued


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "foliot.db"

    async def make() -> None:
        store = open_store(f"sqlite:///{path}", clock=VirtualClock(NOW))
        await upgrade(store.database)
        await store.close()

    asyncio.run(make())
    return path


def authenticator_over(
    door_store: SqlStore, clock: VirtualClock, operator_key: str | None, *, has_tokens: bool = True
) -> Authenticator:
    return Authenticator(
        operator_key=operator_key,
        keys=ApiKeys(door_store.database),
        sessions=Sessions(door_store.database),
        hosts=Hosts(door_store.database),
        verifier=TokenVerifier(clock, secret=JWT_SECRET) if has_tokens else None,
        clock=clock,
    )


@pytest.fixture
async def door(template: Path, tmp_path: Path) -> AsyncIterator[Door]:
    shutil.copy(template, tmp_path / "foliot.db")
    clock = VirtualClock(NOW)
    store = open_store(f"sqlite:///{tmp_path / 'foliot.db'}", clock=clock)
    database = store.database
    yield Door(
        store,
        clock,
        ApiKeys(database),
        Sessions(database),
        Hosts(database),
        authenticator_over(store, clock, OPERATOR_KEY),
    )
    await store.close()


def token(**changed: object) -> str:
    claims = {"sub": "ann", "role": "operator", "exp": int(NOW.timestamp()) + 86_400, **changed}
    return jwt.encode(claims, JWT_SECRET, "HS256")


# --- the operator's key --------------------------------------------------------------------------------


async def test_the_operators_key_is_the_default_hosts_admin_and_the_operator(door: Door) -> None:
    principal = await door.by_bearer(OPERATOR_KEY)
    assert principal == operator_principal()
    assert (principal.name, principal.credential, principal.role) == ("operator", "operator", Role.ADMIN)
    assert (principal.kind, principal.host_id) == (CredentialKind.OPERATOR, DEFAULT_HOST_ID)
    assert principal.is_operator


async def test_nearly_the_operators_key_is_refused(door: Door) -> None:
    for text in (OPERATOR_KEY[:-1], OPERATOR_KEY + "x", OPERATOR_KEY.upper(), hash_of(OPERATOR_KEY)):
        assert await door.refuses(f"Bearer {text}")


async def test_without_an_operators_key_none_is_taken(door: Door) -> None:
    keyless = authenticator_over(door.store, door.clock, None)
    for text in (OPERATOR_KEY, "", "None", "operator"):
        with pytest.raises(UnauthenticatedError):
            await keyless.authenticate(f"Bearer {text}", None)


def test_a_short_operators_key_is_refused_at_the_start(door: Door) -> None:
    with pytest.raises(ValueError, match="at least 32"):
        authenticator_over(door.store, door.clock, "short")


# --- API keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
async def test_a_key_is_its_host_and_role(door: Door, role: Role) -> None:
    made = await door.make_key(role)
    assert await door.by_bearer(made.text) == Principal(
        credential=f"key:{made.record.key_id}",
        kind=CredentialKind.KEY,
        name="ci",
        role=role,
        host_id=DEFAULT_HOST_ID,
    )


async def test_a_key_of_another_host_is_that_hosts(door: Door) -> None:
    other = await door.hosts.create("other", SOMEBODY)
    made = await door.keys.create(other.host_id, "theirs", Role.ADMIN, None, SOMEBODY)
    principal = await door.by_bearer(made.text)
    assert principal.host_id == other.host_id
    assert not principal.is_operator


async def test_a_revoked_key_is_refused_from_then_on(door: Door) -> None:
    made = await door.make_key()
    await door.by_bearer(made.text)
    await door.keys.revoke(made.record.key_id, DEFAULT_HOST_ID, SOMEBODY)
    assert await door.refuses(f"Bearer {made.text}")


async def test_an_expired_key_is_refused_from_that_moment_on(door: Door) -> None:
    made = await door.make_key(expires_ts=NOW + timedelta(seconds=10))
    door.clock.advance(9.999)
    await door.by_bearer(made.text)
    door.clock.advance(0.001)
    assert await door.refuses(f"Bearer {made.text}")


async def test_a_secret_is_good_with_its_own_id_only(door: Door) -> None:
    one, two = [ApiKey.parse((await door.make_key()).text) for _ in range(2)]
    assert one is not None
    assert two is not None
    for key in (
        ApiKey(one.key_id, two.secret),
        ApiKey("0" * 16, one.secret),
        ApiKey(one.key_id, ApiKey.new().secret),
        ApiKey(one.key_id, hash_of(one.secret)[:43]),
        ApiKey.new(),
    ):
        assert await door.refuses(f"Bearer {key.text}")


async def test_what_reads_the_hash_does_not_get_in_by_it(door: Door) -> None:
    made = await door.make_key()
    found = await door.keys.find(made.record.key_id)
    assert found is not None
    for text in (found.secret_hash, f"flt_{made.record.key_id}_{found.secret_hash}"):
        assert await door.refuses(f"Bearer {text}")


async def test_the_last_use_is_noted_without_a_write_for_every_request(door: Door) -> None:
    made = await door.make_key()

    async def last_used() -> datetime | None:
        found = await door.keys.find(made.record.key_id)
        assert found is not None
        return found.record.last_used_ts

    await door.by_bearer(made.text)
    assert await last_used() == NOW
    door.clock.advance(59)
    issued = door.statements()
    await door.by_bearer(made.text)
    assert len(issued) == 1
    assert issued[0].startswith("SELECT")
    assert await last_used() == NOW
    door.clock.advance(2)
    await door.by_bearer(made.text)
    assert await last_used() == NOW + timedelta(seconds=61)


async def test_a_refused_key_is_not_noted_as_used(door: Door) -> None:
    made = await door.make_key()
    wrong = ApiKey(made.record.key_id, ApiKey.new().secret)
    assert await door.refuses(f"Bearer {wrong.text}")
    await door.keys.revoke(made.record.key_id, DEFAULT_HOST_ID, SOMEBODY)
    assert await door.refuses(f"Bearer {made.text}")
    found = await door.keys.find(made.record.key_id)
    assert found is not None
    assert found.record.last_used_ts is None


async def test_a_use_that_can_not_be_noted_is_still_a_use(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_self: ApiKeys, _key_id: str) -> None:
        raise DatabaseUnreachableError("it only reads now")

    monkeypatch.setattr(ApiKeys, "touch", fail)
    assert (await door.by_bearer((await door.make_key()).text)).name == "ci"


# --- tokens --------------------------------------------------------------------------------------------


async def test_a_token_is_who_it_says(door: Door) -> None:
    principal = await door.by_bearer(token())
    assert (principal.kind, principal.name, principal.role) == (CredentialKind.JWT, "ann", Role.OPERATOR)
    assert not principal.is_operator


async def test_a_tokens_host_must_exist(door: Door) -> None:
    other = await door.hosts.create("other", SOMEBODY)
    assert (await door.by_bearer(token(host_id=str(other.host_id)))).host_id == other.host_id
    assert await door.refuses(f"Bearer {token(host_id=str(MISSING_HOST))}")


async def test_that_a_host_exists_is_remembered_for_a_minute_and_that_one_does_not_is_not(
    door: Door,
) -> None:
    text = token(host_id=str(MISSING_HOST))
    assert await door.refuses(f"Bearer {text}")
    await door.hosts.create("late", SOMEBODY, host_id=MISSING_HOST)
    await door.by_bearer(text)
    issued = door.statements()
    door.clock.advance(HOST_HOLDS_S - 1)
    await door.by_bearer(text)
    assert issued == []
    door.clock.advance(1)
    await door.by_bearer(text)
    assert len(issued) == 1


async def test_where_tokens_are_off_none_is_taken(door: Door) -> None:
    off = authenticator_over(door.store, door.clock, OPERATOR_KEY, has_tokens=False)
    await door.by_bearer(token())
    with pytest.raises(UnauthenticatedError):
        await off.authenticate(f"Bearer {token()}", None)


# --- sessions ------------------------------------------------------------------------------------------


async def test_a_session_is_whoever_signed_in(door: Door) -> None:
    made = await door.make_key(Role.VIEWER)
    session = await door.sign_in(made.text)
    assert await door.by_cookie(session.token) == Principal(
        credential=f"session:{hash_of(session.token)[:16]}",
        kind=CredentialKind.SESSION,
        name="ci",
        role=Role.VIEWER,
        host_id=DEFAULT_HOST_ID,
    )


async def test_the_operators_session_is_the_operators(door: Door) -> None:
    session = await door.sign_in(OPERATOR_KEY)
    principal = await door.by_cookie(session.token)
    assert (principal.is_operator, principal.role, principal.name) == (True, Role.ADMIN, "operator")
    assert principal.kind is CredentialKind.SESSION


async def test_a_link_signs_the_operator_in_once(door: Door) -> None:
    link = (await door.sessions.make_link(door.authenticator.holder_of(operator_principal()))).token
    made = await door.sessions.use_link(link, Author())
    assert made is not None
    assert (await door.by_cookie(made.token)).is_operator
    assert await door.sessions.use_link(link, Author()) is None
    assert await door.refuses(None, link)


async def test_the_operators_sessions_end_when_the_key_becomes_another(door: Door) -> None:
    session = await door.sign_in(OPERATOR_KEY)
    for key in ("another operator's key; thirty-two or more", None):
        later = authenticator_over(door.store, door.clock, key)
        with pytest.raises(UnauthenticatedError):
            await later.authenticate(None, session.token)
    restarted = authenticator_over(door.store, door.clock, OPERATOR_KEY)
    assert (await restarted.authenticate(None, session.token)).is_operator


async def test_a_session_ends_with_its_key(door: Door) -> None:
    made = await door.make_key()
    session = await door.sign_in(made.text)
    await door.by_cookie(session.token)
    await door.keys.revoke(made.record.key_id, DEFAULT_HOST_ID, SOMEBODY)
    assert await door.refuses(None, session.token)


async def test_a_session_ends_when_its_key_expires_or_its_week_is_over(door: Door) -> None:
    short = await door.sign_in((await door.make_key(expires_ts=NOW + timedelta(hours=1))).text)
    long = await door.sign_in((await door.make_key()).text)
    door.clock.advance(3600)
    assert await door.refuses(None, short.token)
    await door.by_cookie(long.token)
    door.clock.advance(7 * 86_400 - 3600)
    assert await door.refuses(None, long.token)


async def test_neither_a_token_nor_a_session_makes_a_session(door: Door) -> None:
    """It would outlive what it was made from."""
    by_token = await door.by_bearer(token(role="admin"))
    by_session = await door.by_cookie((await door.sign_in(OPERATOR_KEY)).token)
    for principal in (by_token, by_session):
        with pytest.raises(NotSignableError):
            door.authenticator.holder_of(principal)


async def test_a_session_is_no_bearer_and_a_key_no_cookie(door: Door) -> None:
    made = await door.make_key()
    session = await door.sign_in(made.text)
    assert await door.refuses(f"Bearer {session.token}")
    for cookie in (made.text, OPERATOR_KEY, token()):
        assert await door.refuses(None, cookie)


# --- what else may be shown ----------------------------------------------------------------------------


async def test_who_shows_nothing_is_refused(door: Door) -> None:
    assert await door.refuses(None)


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        " ",
        "Bearer",
        "Bearer ",
        "Bearer  ",
        "Bearer\t{key}",
        "Bearer{key}",
        "{key}",
        "Basic {key}",
        "Token {key}",
        "Bearer Bearer {key}",
        "Bearer {key},{key}",
        "Bearer {key}, Bearer {key}",
        "Bearer {key}\n",
        'Bearer "{key}"',
        "Bearer {key}\0",
        "Bearer ü{key}",
        "Bearer {key}\ud800",
        "Bearer null",
        "Bearer undefined",
        "Bearer ' OR '1'='1",
        "Bearer ..",
        "Bearer " + "a" * 10_000_000,
        "Bearer " + "." * 10_000_000,
        "Bearer " + "{key}" * 1000,
    ],
    ids=lambda text: text[:30],
)
async def test_a_header_that_is_wrong_never_falls_back_to_the_cookie(door: Door, authorization: str) -> None:
    made = await door.make_key()
    session = await door.sign_in(made.text)
    await door.by_cookie(session.token)
    assert await door.refuses(authorization.replace("{key}", made.text), session.token)


async def test_a_header_that_is_too_long_is_not_even_looked_at(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []

    def look(_self: OperatorKey, text: str) -> bool:
        looked_at.append(text)
        return False

    monkeypatch.setattr(OperatorKey, "is_it", look)
    assert await door.refuses("Bearer " + "a" * 8193)
    assert looked_at == []
    assert await door.refuses("Bearer " + "a" * 8192)
    assert len(looked_at) == 1


async def test_a_wrong_bearer_is_refused_beside_a_good_cookie(door: Door) -> None:
    session = await door.sign_in(OPERATOR_KEY)
    for text in (ApiKey.new().text, token(exp=1), OPERATOR_KEY[:-1]):
        assert await door.refuses(f"Bearer {text}", session.token)


async def test_the_header_counts_when_both_are_good(door: Door) -> None:
    made = await door.make_key()
    session = await door.sign_in(OPERATOR_KEY)
    assert (await door.by_bearer(made.text, session.token)).kind is CredentialKind.KEY


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_is_read_in_any_case(door: Door, scheme: str) -> None:
    made = await door.make_key()
    assert (await door.authenticator.authenticate(f"{scheme}  {made.text} ", None)).name == "ci"


@pytest.mark.parametrize("cookie", ["", "x", "ü", "\0", "a" * 1_000_000, "fls_" + "a" * 43])
async def test_a_cookie_that_is_no_session_is_refused(door: Door, cookie: str) -> None:
    assert await door.refuses(None, cookie)


async def test_what_has_not_even_the_form_of_a_credential_costs_no_statement(door: Door) -> None:
    issued = door.statements()
    for authorization, cookie in (
        (None, "x"),
        ("Bearer x", None),
        ("Bearer a.b.c", None),
        ("Basic eA==", None),
    ):
        assert await door.refuses(authorization, cookie)
    assert issued == []


# --- requests that another site makes a browser send ---------------------------------------------------


def test_a_csrf_token_belongs_to_its_session() -> None:
    mine, other = Purpose.SESSION.new_token(), Purpose.SESSION.new_token()
    assert is_csrf_valid(mine, csrf_token(mine))
    for wrong in (None, "", csrf_token(other), csrf_token(mine)[:-1], mine, "ü", "\ud800", "x" * 100_000):
        assert not is_csrf_valid(mine, wrong)


def test_a_csrf_token_shows_neither_the_session_nor_what_is_stored_of_it() -> None:
    session = Purpose.SESSION.new_token()
    assert session not in csrf_token(session)
    assert csrf_token(session) != hash_of(session)


OWN = "foliot.example:8700"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "post", "QUERY"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://foliot.example"},
        {"origin": "http://foliot.example:8701"},
        {"origin": "http://foliot.example:8700.evil.example"},
        {"origin": "http://evil.example/foliot.example:8700"},
        {"origin": "http://foliot.example:8700@evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": OWN},
        {"origin": "file://"},
        {"origin": "http://["},
        {"origin": "chrome-extension://foliot.example:8700"},
        {"origin": f"http://{OWN}, https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "Cross-Site"},
        {"sec-fetch-site": "anything else"},
        {"sec-fetch-site": "cross-site", "origin": f"http://{OWN}"},
        {"sec-fetch-site": "same-origin", "origin": "https://evil.example"},
    ],
    ids=str,
)
def test_a_change_that_another_site_asks_for_is_refused(method: str, headers: Mapping[str, str]) -> None:
    assert refuses_cross_site(method, headers, OWN)
    assert refuses_cross_site(method, Headers(headers), OWN)


@pytest.mark.parametrize(
    ("headers", "host"),
    [
        ({}, OWN),
        ({"origin": f"http://{OWN}"}, OWN),
        ({"origin": f"https://{OWN}"}, OWN),
        ({"origin": "https://Foliot.Example"}, "foliot.example"),
        ({"origin": "https://foliot.example"}, "foliot.example:443"),
        ({"origin": "http://foliot.example:80"}, "foliot.example"),
        ({"origin": "http://[::1]:8700"}, "[::1]:8700"),
        ({"sec-fetch-site": "same-origin"}, OWN),
        ({"sec-fetch-site": "none"}, OWN),
        ({"sec-fetch-site": "same-origin", "origin": f"http://{OWN}"}, OWN),
    ],
    ids=str,
)
def test_a_change_that_our_own_page_or_no_browser_asks_for_is_not(
    headers: Mapping[str, str], host: str
) -> None:
    assert not refuses_cross_site("POST", headers, host)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reading_is_left_to_the_browsers_own_rules(method: str) -> None:
    headers = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    assert not refuses_cross_site(method, headers, OWN)


@pytest.mark.parametrize("host", [None, ""])
def test_a_request_that_names_no_host_is_nobodys_own(host: str | None) -> None:
    assert refuses_cross_site("POST", {"origin": "http://foliot.example"}, host)
    assert refuses_cross_site("POST", {"origin": "http://"}, host)


def test_behind_a_proxy_the_public_name_is_ours_as_well() -> None:
    headers = {"origin": "https://foliot.example"}
    assert refuses_cross_site("POST", headers, "10.0.0.7:8700")
    assert not refuses_cross_site("POST", headers, "10.0.0.7:8700", "foliot.example")
