"""Browsers: signing in once, a cookie that scripts and other sites can't use, and its end."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.cookies import Morsel, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.principal import Role
from foliot.api.access.credentials import SESSION_COOKIE, operator_principal
from foliot.db.tables.access import session_t
from tests.api.answers import made, problem
from tests.api.hosts import Host, unique, yearly
from tests.api.served import API_ALONE, OPERATOR_KEY, SCHEDULES, V1, Served, served

DATABASES = ("sqlite",)
SERVER = {"roles": API_ALONE}


def new_link(server: Served) -> str:
    """The token of a link, as `foliot up` prints one."""

    async def make() -> str:
        assert server.instance.api is not None
        holder = server.instance.api.authenticator.holder_of(operator_principal())
        return (await server.instance.store.sessions.make_link(holder)).token

    return server.run(make())


def cookie_of(answer: httpx2.Response) -> "Morsel[str]":
    [header] = answer.headers.get_list("set-cookie")
    return SimpleCookie(header)[SESSION_COOKIE]


def browser(server: Served, token: str, **headers: str) -> httpx2.Client:
    """A browser that has the cookie, and sends nothing else that would let it in."""
    return server.client(cookies={SESSION_COOKIE: token}, headers=headers)


def signed_in(server: Served, key: str) -> tuple[str, str]:
    """A session by a key: its cookie, and what its pages send along."""
    answer = server.by(None).post("/sign-in", json={"key": key})
    assert answer.status_code == 204, answer.text
    token = cookie_of(answer).value
    with browser(server, token) as client:
        return token, client.get(f"{V1}/me").json()["csrf_token"]


@pytest.fixture
def session(server: Served, host: Host) -> tuple[str, str]:
    return signed_in(server, host.keys["editor"])


@pytest.fixture
def page(server: Served, session: tuple[str, str]) -> Iterator[httpx2.Client]:
    """A page of ours in a signed-in browser."""
    token, csrf = session
    own = {"X-CSRF-Token": csrf, "Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    with browser(server, token, **own) as client:
        yield client


# --- signing in ------------------------------------------------------------------------------------


def test_a_link_signs_in_once(server: Served) -> None:
    link = f"/sign-in?token={new_link(server)}"
    first = server.by(None).get(link)
    assert (first.status_code, first.headers["location"]) == (303, "/")
    with browser(server, cookie_of(first).value) as client:
        me = made(client.get(f"{V1}/me"), 200)
    assert (me["name"], me["role"], me["kind"], me["is_operator"]) == ("operator", "admin", "session", True)
    assert_signs_nobody_in(server.by(None).get(link))


def assert_signs_nobody_in(answer: httpx2.Response) -> None:
    """It leads to the page where one signs in."""
    assert (answer.status_code, answer.headers["location"]) == (303, "/?link=spent")
    assert "set-cookie" not in answer.headers


async def test_of_many_who_use_a_link_at_once_one_is_signed_in(server: Served) -> None:
    link = f"/sign-in?token={new_link(server)}"
    async with server.async_client() as client:
        answers = await asyncio.gather(*(client.get(link) for _ in range(20)))
    [first] = [answer for answer in answers if "set-cookie" in answer.headers]
    for answer in answers:
        if answer is not first:
            assert_signs_nobody_in(answer)


def test_the_cookie_is_for_http_alone_and_for_this_site_alone(server: Served, host: Host) -> None:
    by_link = server.by(None).get(f"/sign-in?token={new_link(server)}")
    by_key = server.by(None).post("/sign-in", json={"key": host.keys["viewer"]})
    for answer in (by_link, by_key):
        cookie = cookie_of(answer)
        assert cookie["httponly"]
        assert cookie["samesite"].lower() in ("lax", "strict")
        assert cookie["path"] == "/"
        assert not cookie["domain"], "not for other hosts of the domain"
        assert 0 < int(cookie["max-age"]) <= 7 * 86400
        assert cookie.value not in answer.text


def test_a_cookie_that_came_over_tls_goes_over_tls_alone(server: Served, host: Host, module_url: str) -> None:
    by_https: dict[str, Any] = {
        "json": {"key": host.keys["viewer"]},
        "headers": {"X-Forwarded-Proto": "https"},
    }
    with served(module_url, roles=API_ALONE, trusted_proxies="127.0.0.1") as behind_proxy:
        assert cookie_of(behind_proxy.by(None).post("/sign-in", **by_https))["secure"]
    assert not cookie_of(server.by(None).post("/sign-in", **by_https))["secure"], "anybody can say so"


@pytest.mark.parametrize(
    "token",
    ["nonsense", "fll_" + "A" * 43, "fls_" + "A" * 43, "x" * 10_000, "%00", "%ff", "' OR 1=1 --", "fll_"],
)
def test_what_is_no_link_signs_nobody_in(server: Served, token: str) -> None:
    assert_signs_nobody_in(server.by(None).get(f"/sign-in?token={token}"))


def test_a_session_is_no_link_and_a_link_is_no_session(server: Served, session: tuple[str, str]) -> None:
    assert_signs_nobody_in(server.by(None).get(f"/sign-in?token={session[0]}"))
    link = new_link(server)
    with browser(server, link) as client:
        assert client.get(f"{V1}/me").status_code == 401
    assert server.by(link).get(f"{V1}/me").status_code == 401
    assert server.by(session[0]).get(f"{V1}/me").status_code == 401, "a cookie is no Bearer"
    assert "set-cookie" in server.by(None).get(f"/sign-in?token={link}").headers, "it is as good as before"


@pytest.mark.parametrize("kind", ["revoked", "expired", "unknown", "empty", "no key"])
def test_a_key_that_is_worth_nothing_signs_nobody_in(server: Served, host: Host, kind: str) -> None:
    keys = {"unknown": "flt_0123456789abcdef_" + "A" * 43, "empty": " ", "no key": "nonsense"}
    answer = server.by(None).post("/sign-in", json={"key": host.keys.get(kind) or keys[kind]})
    problem(answer, 401)
    assert "set-cookie" not in answer.headers


def test_another_site_signs_nobody_in(server: Served, host: Host) -> None:
    body = {"key": host.keys["viewer"]}
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        answer = server.by(None).post("/sign-in", json=body, headers=headers)
        problem(answer, 403)
        assert "set-cookie" not in answer.headers


def test_a_form_of_another_site_is_of_no_type_that_is_taken(server: Served, host: Host) -> None:
    body = f'{{"key": "{host.keys["viewer"]}"}}'.encode()
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = server.by(None).post("/sign-in", content=body, headers={"Content-Type": media})
        problem(answer, 415)


# --- what a signed-in browser may ------------------------------------------------------------------


def test_a_page_of_ours_changes_what_its_key_may_change(page: httpx2.Client) -> None:
    made_ = made(page.post(SCHEDULES, json=yearly()))
    assert made_["managed_by"] == "ui"
    path = f"{SCHEDULES}/{made_['schedule_id']}"
    assert page.patch(path, json={"description": "x"}).status_code == 200
    assert made(page.post(f"{path}/trigger"), 202)["triggered_by"] == "manual"
    assert page.delete(path).status_code == 204


def test_a_session_has_the_role_of_its_key(server: Served, host: Host) -> None:
    for role in Role:
        token, csrf = signed_in(server, host.keys[role.value])
        with browser(server, token, **{"X-CSRF-Token": csrf}) as client:
            assert client.get(f"{V1}/me").json()["role"] == role
            answer = client.post(SCHEDULES, json=yearly())
            assert answer.status_code == (201 if role.covers(Role.EDITOR) else 403)
            assert client.get(f"{V1}/audit").status_code == (200 if role is Role.ADMIN else 403)
            assert client.get(f"{V1}/hosts").status_code == 403


FORGED: dict[str, dict[str, str]] = {
    "nothing at all": {"X-CSRF-Token": ""},
    "a wrong token": {"X-CSRF-Token": "0" * 64},
    "a token that is no ASCII": {"X-CSRF-Token": "ü" * 64},
    "an origin of another site": {"Origin": "https://evil.example"},
    "an origin that is hidden": {"Origin": "null"},
    "an origin with our name in it": {"Origin": "http://127.0.0.1.evil.example"},
    "an origin on another port": {"Origin": "http://127.0.0.1:1"},
    "an origin that is none": {"Origin": "http://["},
    "a request that crosses sites": {"Sec-Fetch-Site": "cross-site"},
    "a request of a sister site": {"Sec-Fetch-Site": "same-site"},
}


@pytest.mark.parametrize("headers", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_request_that_is_not_of_our_pages_changes_nothing(
    page: httpx2.Client, host: Host, method: str, headers: dict[str, str]
) -> None:
    path = f"{SCHEDULES}/{host.schedule()}"
    before = host.admin.get(path).json()
    target = f"{path}/pause" if method == "POST" else path
    body: Any = None if method == "DELETE" else {} if method == "POST" else yearly()
    encoded = {name.encode(): value.encode() for name, value in headers.items()}
    problem(page.request(method, target, headers=encoded, json=body), 403)
    assert host.admin.get(path).json() == before


def test_without_the_header_nothing_is_changed(server: Served, session: tuple[str, str]) -> None:
    with browser(server, session[0]) as client:
        problem(client.post(SCHEDULES, json=yearly()), 403)
        problem(client.post("/sign-out"), 403)
        assert client.get(f"{V1}/me").status_code == 200


def test_the_token_of_another_session_is_worth_nothing(
    server: Served, host: Host, session: tuple[str, str]
) -> None:
    _, other = signed_in(server, host.keys["editor"])
    with browser(server, session[0], **{"X-CSRF-Token": other}) as client:
        problem(client.post(SCHEDULES, json=yearly()), 403)


def test_a_method_in_a_header_is_only_a_header(server: Served, host: Host, session: tuple[str, str]) -> None:
    path = f"{SCHEDULES}/{host.schedule()}"
    names = ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override")
    with browser(server, session[0], **dict.fromkeys(names, "DELETE")) as client:
        assert client.get(path).status_code == 200
        assert client.get(f"{path}?_method=DELETE").status_code == 400
    assert host.admin.get(path).status_code == 200


def test_a_wrong_bearer_is_wrong_whatever_the_cookie(server: Served, session: tuple[str, str]) -> None:
    for bearer in ("Bearer nonsense", "Basic eDp5", "", "Bearer"):
        with browser(server, session[0], Authorization=bearer) as client:
            problem(client.get(f"{V1}/me"), 401)


def test_only_a_session_is_told_a_csrf_token(host: Host) -> None:
    assert host.admin.get(f"{V1}/me").json()["csrf_token"] is None


def test_no_page_of_another_site_may_read_an_answer(server: Served, session: tuple[str, str]) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    with browser(server, session[0], **headers) as client:
        for answer in (client.get(f"{V1}/me"), client.options(SCHEDULES)):
            assert not [name for name in answer.headers if name.startswith("access-control-")]
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"


# --- its end ---------------------------------------------------------------------------------------


def test_signing_out_ends_the_session_and_takes_the_cookie_away(
    page: httpx2.Client, server: Served, session: tuple[str, str]
) -> None:
    answer = page.post("/sign-out")
    assert answer.status_code == 204
    assert cookie_of(answer).value == ""
    with browser(server, session[0]) as client:
        problem(client.get(f"{V1}/me"), 401)


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_session_ends_with_its_key(server: Served, host: Host, how: str) -> None:
    key_id, key = host.key(Role.EDITOR)
    token, csrf = signed_in(server, key)
    with browser(server, token, **{"X-CSRF-Token": csrf}) as client:
        assert client.get(f"{V1}/me").status_code == 200
        if how == "revoked":
            assert host.admin.delete(f"{V1}/keys/{key_id}").status_code == 204
        else:
            host.expire(key_id)
        problem(client.get(f"{V1}/me"), 401)
        problem(client.post(SCHEDULES, json=yearly()), 401)
    problem(server.by(key).get(f"{V1}/me"), 401)


def test_a_session_runs_out(server: Served, host: Host) -> None:
    token, _ = signed_in(server, host.keys["viewer"])
    with browser(server, token) as client:
        credential = client.get(f"{V1}/me").json()["credential"]
        past = datetime.now(UTC) - timedelta(seconds=1)
        digits = credential.removeprefix("session:")

        async def work(connection: AsyncConnection) -> None:
            own = session_t.c.secret_hash.startswith(digits)
            await connection.execute(update(session_t).where(own).values(expires_ts=past))

        server.write(work)
        problem(client.get(f"{V1}/me"), 401)


def test_the_operators_sessions_end_when_the_operator_takes_another_key(
    server: Served, module_url: str
) -> None:
    token = cookie_of(server.by(None).get(f"/sign-in?token={new_link(server)}")).value
    with served(module_url, roles=API_ALONE, admin_key="another-key-of-the-operator-0123456789") as other:
        with browser(other, token) as client:
            problem(client.get(f"{V1}/me"), 401)
        with browser(server, token) as client:
            assert client.get(f"{V1}/me").status_code == 200


# --- what is left of it ----------------------------------------------------------------------------


def test_the_database_holds_neither_cookies_nor_links(server: Served, session: tuple[str, str]) -> None:
    link = new_link(server)

    async def work(connection: AsyncConnection) -> str:
        return str((await connection.execute(select(session_t))).all())

    rows = server.write(work)
    assert session[0] not in rows
    assert link not in rows


def test_signing_in_and_out_is_written_down(server: Served, host: Host) -> None:
    key_id, key = host.key(Role.VIEWER, name=unique("somebody"))
    token, csrf = signed_in(server, key)
    with browser(server, token, **{"X-CSRF-Token": csrf}) as client:
        credential = client.get(f"{V1}/me").json()["credential"]
        assert client.post("/sign-out").status_code == 204
    records: list[dict[str, Any]] = host.admin.get(f"{V1}/audit?resource_id={credential}").json()["items"]
    assert [each["action"] for each in records] == ["session.ended", "session.created"]
    for each in records:
        assert each["actor"].startswith("somebody")
        assert each["address"] == urlsplit(server.url).hostname
        assert each["request_id"]
        assert token not in str(each)
    assert records[1]["after"] == {"key_id": key_id}


# --- links that are asked for -----------------------------------------------------------------------


def test_the_operators_key_makes_a_link_that_works_once(server: Served, operator: httpx2.Client) -> None:
    link = made(operator.post(f"{V1}/sign-in-links"))
    left = datetime.fromisoformat(link["expires_ts"]) - datetime.now(UTC)
    assert timedelta(minutes=10) < left <= timedelta(minutes=15)
    first = server.by(None).get(f"/sign-in?token={link['token']}")
    with browser(server, cookie_of(first).value) as client:
        assert made(client.get(f"{V1}/me"), 200)["is_operator"] is True
    assert_signs_nobody_in(server.by(None).get(f"/sign-in?token={link['token']}"))
    [record] = operator.get(f"{V1}/audit", params={"action": "session.link_created", "page_size": 1}).json()[
        "items"
    ]
    assert record["actor"] == "operator"
    assert link["token"] not in str(record)


def test_a_signed_in_browser_makes_no_links(server: Served) -> None:
    token, csrf = signed_in(server, OPERATOR_KEY)
    own = {"X-CSRF-Token": csrf, "Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    with browser(server, token, **own) as client:
        problem(client.post(f"{V1}/sign-in-links"), 403)


def test_a_link_is_not_kept_for_a_second_request(operator: httpx2.Client) -> None:
    headers = {"Idempotency-Key": unique()}
    made(operator.post(f"{V1}/sign-in-links", headers=headers))
    problem(operator.post(f"{V1}/sign-in-links", headers=headers), 409)
