"""Executions: the list as they happen, and all there is to know of one."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.hosts import unique
from tests.waiting import until
from tests.web.conftest import OpenPage
from tests.web.pages import card, choose, dialog, live, note, row, sheet, table, title
from tests.web.served import WebServed

FAILS: dict[str, Any] = {"target": {"kind": "function", "name": "fail"}, "retry": {"max_attempts": 1}}
HOLDS: dict[str, Any] = {"target": {"kind": "function", "name": "hold"}}


@pytest.fixture
def name() -> str:
    return unique("web")


def test_the_list_tells_of_which_schedule_how_it_stands_and_what_came_of_it(
    server: WebServed, page: Page, name: str
) -> None:
    good, _ = server.executed(name=f"{name}-good")
    bad, _ = server.executed(name=f"{name}-bad", **FAILS)
    address = f"/executions?schedule_id={good['schedule_id']}&schedule_id={bad['schedule_id']}"
    page.goto(address)
    for text in ("success", "hello you", "by the API, operator", "default", "medium"):
        expect(row(page, "Executions", f"{name}-good")).to_contain_text(text)
    for text in ("failed", "as it was told to"):
        expect(row(page, "Executions", f"{name}-bad")).to_contain_text(text)
    page.get_by_role("button", name=re.compile("^Status")).click()
    page.get_by_role("menuitemcheckbox", name="failed").click()
    page.keyboard.press("Escape")
    expect(table(page, "Executions").locator("tbody tr")).to_have_count(1)
    assert "status=failed" in page.url


def test_a_new_execution_is_announced_and_one_that_is_shown_changes_in_its_place(
    server: WebServed, page: Page, name: str
) -> None:
    schedule = server.schedule(name=name, overlap={"policy": "allow", "max_instances": 9}, **HOLDS)
    first = server.trigger(schedule["schedule_id"])
    page.goto(f"/executions?schedule_id={schedule['schedule_id']}")
    rows = table(page, "Executions").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("running")
    expect(rows.first.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "50")
    live(page)
    server.trigger(schedule["schedule_id"])
    news = page.get_by_role("button", name="1 new — show")
    expect(news).to_be_visible()
    expect(rows).to_have_count(1)
    server.let_go(name)
    server.ended(first)
    expect(rows.first).to_contain_text("success")
    expect(rows).to_have_count(1)
    news.click()
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_have_attribute("data-row", first)


def test_a_frozen_list_stays_as_it_is_until_it_goes_on(server: WebServed, page: Page, name: str) -> None:
    schedule = server.schedule(name=name, **HOLDS)
    execution_id = server.trigger(schedule["schedule_id"])
    page.goto(f"/executions?schedule_id={schedule['schedule_id']}")
    shown = row(page, "Executions", name)
    expect(shown).to_contain_text("running")
    live(page)
    page.get_by_role("button", name="Freeze").click()
    expect(page.get_by_role("button", name=re.compile("As at .* go on"))).to_be_visible()
    server.let_go(name)
    server.ended(execution_id)
    # The stream has told of it by now: another page, that is not frozen, shows it.
    other = page.context.new_page()
    other.goto(f"/executions?schedule_id={schedule['schedule_id']}")
    expect(row(other, "Executions", name)).to_contain_text("success")
    expect(shown).to_contain_text("running")
    page.get_by_role("button", name="Go on", exact=True).click()
    expect(shown).to_contain_text("success")


def test_many_are_tried_again_after_their_number_was_told(server: WebServed, page: Page, name: str) -> None:
    schedule, _ = server.executed(3, name=name, **FAILS)
    page.goto(f"/executions?schedule_id={schedule['schedule_id']}")
    page.get_by_role("checkbox", name=re.compile(f"^Choose {name}")).first.click()
    chosen = page.get_by_role("region", name="Chosen executions")
    chosen.get_by_role("button", name="Choose all that match").click()
    expect(chosen.get_by_role("button", name="Cancel")).to_be_visible()
    chosen.get_by_role("button", name="Try again").click()
    asked = dialog(page, "Try again: 3 executions")
    asked.get_by_role("button", name="Retry 3").click()
    expect(note(page, "Trying again: 3 executions")).to_be_visible()

    def attempts() -> list[int]:
        items = server.get("executions", schedule_id=schedule["schedule_id"])["items"]
        return [each["attempt"] for each in items]

    until(lambda: attempts() == [2, 2, 2])


def test_one_execution_tells_its_life_its_attempts_its_error_and_its_log(
    server: WebServed, page: Page, name: str
) -> None:
    schedule, [execution] = server.executed(
        name=name,
        target={"kind": "function", "name": "fail", "args": {"text": "the disk is full"}},
        retry={"max_attempts": 2, "initial_delay_seconds": 0.1, "max_delay_seconds": 0.1},
    )
    page.goto(f"/executions/{execution['execution_id']}")
    title(page, name)
    for moment in ("Asked for", "First start", "Ready again", "Attempt 2", "Ended"):
        expect(card(page, "Life").get_by_role("listitem").filter(has_text=moment).first).to_be_visible()
    error = card(page, "Error")
    expect(error).to_contain_text("the disk is full")
    expect(error.get_by_role("region", name="the traceback")).to_contain_text("Traceback")
    attempts = card(page, "2 attempts").get_by_role("listitem")
    expect(attempts).to_have_count(2)
    attempts.first.get_by_role("button").click()
    expect(attempts.first).to_contain_text("the disk is full")
    facts = card(page, "Facts")
    expect(facts.get_by_role("link", name=name)).to_have_attribute(
        "href", f"/schedules/{schedule['schedule_id']}"
    )
    expect(facts).to_contain_text(execution["worker_id"])
    expect(card(page, "Log")).to_contain_text("It logged nothing.")


def test_the_result_and_the_log_are_shown_and_filtered_by_level(
    server: WebServed, page: Page, name: str
) -> None:
    target = {"kind": "function", "name": "tell", "args": {"text": "once upon a time", "lines": 30}}
    _, [execution] = server.executed(name=name, target=target)
    page.goto(f"/executions/{execution['execution_id']}")
    expect(card(page, "Result")).to_contain_text("once upon a time")
    log = page.get_by_role("log", name="Log")
    expect(log.locator("time")).to_have_count(30)
    expect(log).to_contain_text("29 once upon a time")
    page.get_by_label("Levels to show").select_option(
        index=page.get_by_label("Levels to show").locator("option").count() - 1
    )
    expect(page.get_by_text("No line is of these levels.")).to_be_visible()
    assert "level=" in page.url


def test_a_running_execution_is_followed_and_cancelled(server: WebServed, page: Page, name: str) -> None:
    schedule = server.schedule(name=name, **HOLDS)
    execution_id = server.trigger(schedule["schedule_id"])
    page.goto(f"/executions/{execution_id}")
    expect(page.get_by_role("progressbar", name="Progress")).to_have_attribute("aria-valuenow", "50")
    expect(page.get_by_role("main")).to_contain_text("half way")
    page.get_by_role("button", name="Cancel").click()
    asked = dialog(page, "Cancel the execution?")
    asked.get_by_label("Reason").fill("not needed")
    asked.get_by_role("button", name="Stop it").click()
    expect(page.get_by_role("main").get_by_role("status").get_by_text("cancelled")).to_be_visible()
    assert server.ended(execution_id)["status"] == "cancelled"


def test_the_panel_over_the_list_steps_to_its_neighbours(server: WebServed, page: Page, name: str) -> None:
    schedule, [first, second] = server.executed(2, name=name)
    page.goto(f"/executions?schedule_id={schedule['schedule_id']}")
    rows = table(page, "Executions").locator("tbody tr")
    rows.nth(0).get_by_role("link").first.click()
    panel = sheet(page, name)
    expect(panel).to_contain_text(second["execution_id"])
    panel.get_by_role("button", name="Previous execution of the schedule").click()
    expect(panel).to_contain_text(first["execution_id"])
    assert f"open={first['execution_id']}" in page.url
    expect(panel.get_by_role("button", name="Previous execution of the schedule")).to_be_disabled()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_a_failed_one_is_tried_again_by_keyboard_alone(server: WebServed, page: Page, name: str) -> None:
    schedule, [execution] = server.executed(name=name, **FAILS)
    page.goto(f"/executions?schedule_id={schedule['schedule_id']}")
    rows = table(page, "Executions").locator("tbody tr")
    expect(rows).to_have_count(1)
    rows.first.focus()
    page.keyboard.press("Enter")
    panel = sheet(page, name)
    expect(panel).to_be_focused()
    again = panel.get_by_role("button", name="Try again")
    for _ in range(10):
        page.keyboard.press("Tab")
        if again.evaluate("element => element === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(dialog(page, "Try again?").get_by_label("Reason")).to_be_focused()
    page.keyboard.type("by hand")
    page.keyboard.press("Enter")
    expect(note(page, f"Trying again {name}")).to_be_visible()
    until(lambda: server.get(f"executions/{execution['execution_id']}")["attempt"] == 2)


def test_a_viewer_is_told_why_nothing_can_be_tried_again_or_cancelled(
    server: WebServed, open_page: OpenPage, name: str
) -> None:
    _, [execution] = server.executed(name=name, **FAILS)
    page = open_page("viewer")
    page.goto(f"/executions/{execution['execution_id']}")
    again = page.get_by_role("button", name="Try again")
    expect(again).to_be_disabled()
    expect(again).to_have_accessible_description("Takes the role operator; yours is viewer.")
    page.goto(f"/executions?schedule_id={execution['schedule_id']}")
    page.get_by_role("button", name=f"Actions for {name}").click()
    expect(page.get_by_role("menuitem", name="Try again…")).to_be_disabled()
    expect(page.get_by_role("menuitem", name="Cancel…")).to_be_disabled()


def test_what_is_over_can_not_be_cancelled_and_says_so(server: WebServed, page: Page, name: str) -> None:
    schedule, [execution] = server.executed(name=name)
    page.goto(f"/executions?schedule_id={schedule['schedule_id']}")
    page.get_by_role("button", name=f"Actions for {name}").click()
    cancel = page.get_by_role("menuitem", name="Cancel…")
    expect(cancel).to_be_disabled()
    expect(cancel).to_contain_text(re.compile("ended|over", re.I))
    page.keyboard.press("Escape")
    choose(page, page.get_by_role("button", name=f"Actions for {name}"), "Open as a page")
    expect(page).to_have_url(re.compile(execution["execution_id"]))
