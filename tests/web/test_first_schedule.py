"""An installation without a schedule, up to its first."""

from playwright.sync_api import Page, expect

from tests.web.conftest import OpenPage
from tests.web.pages import live, no_sideways_scroll, row, title
from tests.web.served import WebServed


def test_an_empty_installation_shows_three_ways_to_make_the_first_schedule(page: Page) -> None:
    for address in ("/", "/schedules"):
        page.goto(address)
        expect(page.get_by_role("heading", name="There is no schedule yet")).to_be_visible()
        for way in ("With the form", "On the command line", "In your code"):
            expect(page.get_by_role("heading", name=way)).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the command").click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("foliot schedule create")
    page.get_by_role("button", name="New schedule").last.click()
    expect(page).to_have_url("/schedules/new")


def test_whoever_may_not_make_schedules_is_told_why(open_page: OpenPage) -> None:
    page = open_page("viewer")
    page.goto("/")
    button = page.get_by_role("button", name="New schedule")
    expect(button).to_be_disabled()
    expect(button).to_have_accessible_description("Takes the role editor; yours is viewer.")
    button.click(force=True)
    expect(page).to_have_url("/")


def test_other_screens_say_that_there_is_nothing_yet(open_page: OpenPage) -> None:
    page = open_page(width=390)
    page.goto("/executions")
    expect(page.get_by_text("Nothing has run yet")).to_be_visible()
    assert no_sideways_scroll(page) == []
    page.goto("/timeline")
    expect(page.get_by_text("Nothing was due, and nothing is planned")).to_be_visible()
    assert no_sideways_scroll(page) == []


def test_the_first_schedule_shows_up_by_itself(server: WebServed, page: Page) -> None:
    page.goto("/schedules")
    live(page)
    expect(page.get_by_role("heading", name="There is no schedule yet")).to_be_visible()
    made = server.schedule()
    expect(row(page, "Schedules", made["name"])).to_be_visible()
    page.goto("/")
    title(page, "Overview")
    expect(page.get_by_role("link", name="Paused")).to_contain_text("of 1 schedules")
