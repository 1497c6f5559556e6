"""What open pages ask the server for: what the stream names, and nothing else again and again."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from tests.waiting import until
from tests.web.pages import live, row, settled, table, title
from tests.web.served import WebServed

MANY = 150
TICKS = 6
"""Executions that happen while requests are counted: one per second."""


class Traffic:
    """Requests of a page to the API, since the last `forget`; the stream is not one of them."""

    def __init__(self, page: Page) -> None:
        self._requests: list[Request] = []
        page.on("requestfinished", self._hear)

    def _hear(self, request: Request) -> None:
        path = urlsplit(request.url).path
        if path.startswith("/api/v1/") and path != "/api/v1/stream":
            self._requests.append(request)

    def forget(self) -> None:
        self._requests.clear()

    def to(self, pattern: str) -> list[str]:
        """Path and query of those whose path matches as a whole."""
        urls = [urlsplit(request.url) for request in self._requests]
        return [
            f"{url.path}?{url.query}"
            for url in urls
            if re.fullmatch(pattern, url.path.removeprefix("/api/v1/"))
        ]


@pytest.fixture(scope="module", autouse=True)
def ticking(server: WebServed) -> Iterator[str]:
    """One schedule that runs every second, among many that don't."""
    trigger = {"kind": "cron", "expression": "0 3 * * *"}
    for number in range(MANY - 1):
        server.schedule(name=f"quiet {number:03}", trigger=trigger, description="word " * 40)
    name = "often"
    made = server.schedule(name=name, trigger={"kind": "interval", "seconds": 1})
    yield made["schedule_id"]
    server.post(f"schedules/{made['schedule_id']}/pause", status=200)


def wait_for_ticks(server: WebServed, page: Page, schedule_id: str) -> None:
    """Let TICKS more executions end while the page listens."""
    seen = {each["execution_id"] for each in server.get("executions", schedule_id=schedule_id)["items"]}

    def is_over() -> bool:
        page.evaluate("0")  # Playwright reports requests only while it is called
        items = server.get("executions", schedule_id=schedule_id, status="success")["items"]
        return len([each for each in items if each["execution_id"] not in seen]) >= TICKS

    until(is_over)


def test_a_long_list_reads_only_the_rows_that_the_stream_names(
    server: WebServed, page: Page, ticking: str
) -> None:
    traffic = Traffic(page)
    page.goto("/schedules")
    title(page, "Schedules")
    rows = table(page, "Schedules").locator("tbody tr[data-row]")
    for number in range(50, MANY, 50):
        expect(rows).to_have_count(number)
        page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(MANY)
    live(page)
    traffic.forget()
    wait_for_ticks(server, page, ticking)

    def has_read() -> bool:
        page.evaluate("0")
        return traffic.to("schedules") != []

    until(has_read)
    asked = [parse_qs(urlsplit(each).query).get("name") for each in traffic.to("schedules")]
    assert set(map(str, asked)) == {"['often']"}, "nothing else of the list is read again"
    assert len(asked) <= TICKS
    # And it is up to date: no run is due for longer than it takes to read a row.
    shown = row(page, "Schedules", "often").locator("time").first
    expect(shown).to_have_text(re.compile(r"^(due|\d s)$"))


def test_the_timeline_of_a_month_takes_few_requests(server: WebServed, page: Page, ticking: str) -> None:
    traffic = Traffic(page)
    page.goto("/timeline?span=month")
    title(page, "Timeline")
    settled(page)
    live(page)
    grid = page.get_by_role("list", name="Schedules over time")
    expect(grid.get_by_role("listitem").filter(has_text="quiet 000")).to_have_count(1)
    cells = grid.get_by_role("listitem").filter(has_text="often").get_by_role("link")
    expect(cells.nth(1)).to_have_accessible_name(re.compile(r"often, .*success"))
    assert len(traffic.to(".*")) <= 5, traffic.to(".*")
    traffic.forget()
    wait_for_ticks(server, page, ticking)
    assert traffic.to("schedules/.*") == []
    assert len(traffic.to("timeline")) <= 2


@pytest.mark.parametrize("path", ["/schedules", "/timeline?span=month", "/executions"])
def test_an_idle_page_asks_how_things_stand_and_nothing_else(
    server: WebServed, page: Page, ticking: str, path: str
) -> None:
    server.post(f"schedules/{ticking}/pause", status=200)
    try:
        until(lambda: not server.get("executions", status=["pending", "running"])["items"])
        traffic = Traffic(page)
        page.clock.install()
        page.goto(path)
        settled(page)
        live(page)
        # What happened just before it opened may still be read once.
        page.clock.run_for(20_000)
        settled(page)
        traffic.forget()
        page.clock.run_for(60_000)
        settled(page)
        assert 1 <= len(traffic.to("status")) <= 7
        assert traffic.to("(?!status).*") == []
    finally:
        server.post(f"schedules/{ticking}/resume", status=200)
