"""Open pages and the six connections that a browser has per server.

Chromium runs here with its back/forward cache, as everybody's does: Playwright switches it off by default,
and the headless shell has none.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect

from tests.api.hosts import unique
from tests.web.conftest import launched
from tests.web.pages import live, row
from tests.web.served import WebServed

MAX_CONNECTIONS = 6
"""Per server over HTTP/1.1, in every browser."""


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with launched(playwright, without_default_args=["--disable-back-forward-cache"]) as made:
        yield made


def load(page: Page, path: str) -> None:
    """Load the whole page, as a reload or a typed address does."""
    page.goto(path)
    live(page)


def test_full_page_loads_in_one_tab_do_not_use_up_the_connections(page: Page) -> None:
    for number in range(MAX_CONNECTIONS + 1):
        load(page, f"/schedules?q=load-{number}")
    assert page.evaluate("fetch('/api/v1/me').then((answer) => answer.status)") == 200


def test_a_page_from_the_back_forward_cache_is_live_and_shows_what_it_missed(
    server: WebServed, page: Page
) -> None:
    name = unique("left")
    schedule = server.schedule(name=name)
    load(page, f"/schedules?q={name}")
    shown = row(page, "Schedules", name)
    expect(shown).to_contain_text("active")
    page.evaluate("addEventListener('pageshow', (event) => { window.isFromCache = event.persisted; })")
    load(page, "/cluster")
    server.post(f"schedules/{schedule['schedule_id']}/pause", {"reason": "while away"}, status=200)
    page.evaluate("history.back()")
    expect(shown).to_contain_text("while away")
    assert page.evaluate("window.isFromCache") is True, page.evaluate(
        "JSON.stringify(performance.getEntriesByType('navigation')[0].notRestoredReasons)"
    )
    live(page)
    # The stream works again: it reports what happens from now on.
    server.post(f"schedules/{schedule['schedule_id']}/resume", status=200)
    expect(shown).not_to_contain_text("while away")
