"""The way in and out: a key, a link that works once, and what each says when it does not."""

import re

from playwright.sync_api import Page, expect

from foliot.api.access.credentials import operator_principal
from tests.api.served import OPERATOR_KEY
from tests.web.conftest import OpenPage
from tests.web.pages import title
from tests.web.served import WebServed


def new_link(server: WebServed) -> str:
    """As `foliot up` prints it."""

    async def make() -> str:
        assert server.instance.api is not None
        holder = server.instance.api.authenticator.holder_of(operator_principal())
        return (await server.instance.store.sessions.make_link(holder)).token

    return f"/sign-in?token={server.run(make())}"


def sign_in(page: Page, key: str) -> None:
    page.get_by_label("Key").fill(key)
    page.get_by_role("button", name="Sign in").click()


def test_whoever_is_not_signed_in_is_asked_for_a_key_and_then_is_where_they_wanted_to_be(
    open_page: OpenPage,
) -> None:
    page = open_page(None)
    page.goto("/schedules?state=paused")
    title(page, "Sign in to Foliot")
    expect(page.get_by_label("Key")).to_be_focused()
    sign_in(page, OPERATOR_KEY)
    title(page, "Schedules")
    assert page.url.endswith("/schedules?state=paused")


def test_a_wrong_key_is_refused_in_words_and_another_may_be_tried(open_page: OpenPage) -> None:
    page = open_page(None)
    page.goto("/")
    sign_in(page, "flt_0123456789abcdef_" + "A" * 43)
    expect(page.get_by_role("alert")).to_have_text("This key is not valid, or not any more.")
    sign_in(page, OPERATOR_KEY)
    title(page, "Overview")


def test_a_one_time_link_signs_in_once_and_a_spent_one_says_so(
    server: WebServed, open_page: OpenPage
) -> None:
    link = new_link(server)
    first = open_page(None)
    first.goto(link)
    title(first, "Overview")
    assert "token" not in first.url
    second = open_page(None)
    second.goto(link)
    title(second, "Sign in to Foliot")
    expect(second.get_by_role("alert")).to_contain_text("used already")
    assert "token" not in second.url


def test_signing_out_ends_the_session_in_the_browser_and_on_the_server(
    server: WebServed, open_page: OpenPage
) -> None:
    page = open_page(None)
    page.goto("/")
    sign_in(page, OPERATOR_KEY)
    title(page, "Overview")
    [cookie] = page.context.cookies()
    page.get_by_role("button", name="Signed in as operator").click()
    page.get_by_role("menuitem", name="Sign out").click()
    title(page, "Sign in to Foliot")
    assert page.context.cookies() == []
    with server.client(cookies={str(cookie["name"]): str(cookie["value"])}) as client:
        assert client.get("/api/v1/me").status_code == 401


def test_a_page_whose_session_was_ended_elsewhere_comes_back_to_the_way_in(
    server: WebServed, open_page: OpenPage
) -> None:
    page = open_page(None)
    page.goto("/")
    sign_in(page, OPERATOR_KEY)
    title(page, "Overview")
    page.context.clear_cookies()
    # Unless something that the page asked for by itself has led there already.
    page.evaluate("document.querySelector('a[href=\"/schedules\"]')?.click()")
    title(page, "Sign in to Foliot")


def test_the_cookie_is_out_of_reach_of_scripts_and_the_key_is_not_kept(open_page: OpenPage) -> None:
    page = open_page(None)
    page.goto("/")
    sign_in(page, OPERATOR_KEY)
    title(page, "Overview")
    assert page.evaluate("document.cookie") == ""
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert OPERATOR_KEY not in kept
    assert not re.search(r"flt_|token", kept)
