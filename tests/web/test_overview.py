"""The overview: figures that are right, lead to what they count, and follow what happens."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.hosts import unique
from tests.waiting import until
from tests.web.pages import card, live, row, table, title
from tests.web.served import WebServed


def tile(page: Page, name: str) -> Locator:
    return page.get_by_role("main").get_by_role("link", name=re.compile(f"^{name}"))


@pytest.fixture(scope="module", autouse=True)
def scene(server: WebServed) -> dict[str, str]:
    """One that failed, one that is paused, one that runs, one that is due in half an hour."""
    failed, _ = server.executed(
        name="fails", target={"kind": "function", "name": "fail"}, retry={"max_attempts": 1}
    )
    paused = server.schedule(name="rests")
    server.post(f"schedules/{paused['schedule_id']}/pause", {"reason": "holidays"}, status=200)
    running = server.schedule(name="runs", target={"kind": "function", "name": "hold"})
    execution_id = server.trigger(running["schedule_id"])
    until(lambda: server.get(f"executions/{execution_id}")["status"] == "running")
    at = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
    server.schedule(name="soon", trigger={"kind": "once", "at": at})
    return {"failed": failed["schedule_id"], "running": execution_id}


def test_the_tiles_count_what_their_lists_show(page: Page) -> None:
    page.goto("/")
    title(page, "Overview")
    expect(tile(page, "Due next hour")).to_contain_text("times of 1 schedules")
    expect(tile(page, "Running")).to_contain_text(re.compile(r"Running\s*1"))
    expect(tile(page, "Failed, 24 h")).to_contain_text(re.compile(r"24 h\s*1"))
    expect(tile(page, "Late")).to_contain_text("all due times were acted on")
    expect(tile(page, "Paused")).to_contain_text("of 4 schedules")

    tile(page, "Running").click()
    title(page, "Executions")
    expect(table(page, "Executions").locator("tbody tr")).to_have_count(1)
    expect(row(page, "Executions", "runs")).to_be_visible()
    page.go_back()
    tile(page, "Failed, 24 h").click()
    expect(table(page, "Executions").locator("tbody tr")).to_have_count(1)
    expect(row(page, "Executions", "fails")).to_be_visible()
    page.go_back()
    tile(page, "Paused").click()
    title(page, "Schedules")
    expect(table(page, "Schedules").locator("tbody tr")).to_have_count(1)
    expect(row(page, "Schedules", "rests")).to_be_visible()


def test_what_comes_next_what_failed_and_who_leads_is_told(server: WebServed, page: Page) -> None:
    page.goto("/")
    expect(card(page, "Next").get_by_role("link").filter(has_text="soon")).to_contain_text(
        re.compile(r"(29|28):\d\d$")
    )
    failure = card(page, "Recent failures").get_by_role("link").filter(has_text="fails")
    expect(failure).to_contain_text("as it was told to")
    expect(failure).to_contain_text("failed")
    leader = server.get("status")["leaders"][0]["instance_id"]
    expect(card(page, "Leader and instances")).to_contain_text(f"by {leader}")
    expect(card(page, "Leader and instances").get_by_role("listitem")).to_contain_text("live")
    failure.click()
    title(page, "fails")


def test_the_plots_say_in_words_what_they_draw(page: Page) -> None:
    page.goto("/")
    drawn = card(page, "Executions per minute").get_by_role("img")
    expect(drawn).to_have_accessible_name(re.compile(r"Executions of the last hour: .*1 failed"))
    expect(card(page, "Lateness").get_by_role("img")).to_have_accessible_name(re.compile("p99 was"))
    assert drawn.locator("canvas").bounding_box() is not None


def test_figures_follow_what_happens_without_loading_the_page_again(server: WebServed, page: Page) -> None:
    page.goto("/")
    live(page)
    expect(tile(page, "Running")).to_contain_text(re.compile(r"Running\s*1"))
    page.evaluate("window.isTheSamePage = true")
    name = unique("another")
    made = server.schedule(name=name, target={"kind": "function", "name": "hold"})
    execution_id = server.trigger(made["schedule_id"])
    expect(tile(page, "Running")).to_contain_text(re.compile(r"Running\s*2"))
    server.let_go(name)
    server.ended(execution_id)
    expect(tile(page, "Running")).to_contain_text(re.compile(r"Running\s*1"))
    assert page.evaluate("window.isTheSamePage")


def test_the_finder_opens_by_keys_and_leads_to_a_schedule(page: Page) -> None:
    page.goto("/")
    title(page, "Overview")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("rest")
    expect(page.get_by_role("option", selected=True)).to_contain_text("rests")
    page.keyboard.press("Enter")
    title(page, "rests")
    page.keyboard.press("Control+k")
    page.keyboard.type("timel")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Timeline")
    page.keyboard.press("Enter")
    title(page, "Timeline")


def test_the_theme_follows_the_system_until_one_is_chosen_and_is_remembered(page: Page) -> None:
    page.goto("/")
    title(page, "Overview")
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")
    expect(root).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Theme: As the system").click()
    page.get_by_role("menuitemradio", name="Light").click()
    expect(root).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.get_by_role("button", name="Theme: Light")).to_be_visible()
    expect(root).to_have_attribute("data-theme", "light")


def test_an_address_that_leads_nowhere_says_so(page: Page) -> None:
    page.goto("/no/such/place")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text(re.compile("nothing|no screen|not here", re.I))
