"""The list of schedules: what it shows, what can be done from it, and that it stays still when read."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.hosts import unique
from tests.waiting import until
from tests.web.conftest import OpenPage
from tests.web.pages import choose, dialog, live, note, row, table, title
from tests.web.served import WebServed


@pytest.fixture
def name() -> str:
    return unique("web")


def switch(page: Page, name: str) -> Locator:
    return page.get_by_role("switch", name=f"{name} is enabled")


def test_the_table_tells_name_task_when_state_next_run_and_last_result(
    server: WebServed, page: Page, name: str
) -> None:
    server.executed(
        2,
        name=name,
        trigger={"kind": "cron", "expression": "30 7 * * 1-5", "timezone": "Europe/Berlin"},
        target={"kind": "function", "name": "fail"},
        retry={"max_attempts": 1},
    )
    page.goto(f"/schedules?q={name}")
    shown = row(page, "Schedules", name)
    for text in ("fail", "07:30", "30 7 * * 1-5", "Europe/Berlin", "active", "failed", "as it was told to"):
        expect(shown).to_contain_text(text)
    expect(shown.get_by_role("img", name=re.compile("2 failed"))).to_be_visible()
    for heading in ("Name", "When", "State, next run", "Last result", "Last 20"):
        expect(table(page, "Schedules").get_by_role("columnheader", name=heading)).to_be_visible()


def test_the_switch_pauses_and_resumes_and_a_pause_can_be_undone(
    server: WebServed, page: Page, name: str
) -> None:
    made = server.schedule(name=name)
    page.goto(f"/schedules?q={name}")
    expect(switch(page, name)).to_be_checked()
    switch(page, name).click()
    expect(switch(page, name)).not_to_be_checked()
    expect(row(page, "Schedules", name)).to_contain_text("paused")
    assert server.get(f"schedules/{made['schedule_id']}")["paused"]
    page.get_by_role("button", name="Undo").click()
    expect(switch(page, name)).to_be_checked()
    assert not server.get(f"schedules/{made['schedule_id']}")["paused"]


def test_run_now_runs_it_and_leads_to_the_execution(server: WebServed, page: Page, name: str) -> None:
    made = server.schedule(name=name)
    page.goto(f"/schedules?q={name}")
    choose(page, page.get_by_role("button", name=f"Actions for {name}"), "Run now")
    expect(note(page, f"Running {name} now")).to_be_visible()
    page.get_by_role("button", name="Show", exact=True).click()
    title(page, name)
    expect(page.get_by_role("main").get_by_text("success").first).to_be_visible()
    [execution] = server.get("executions", schedule_id=made["schedule_id"])["items"]
    assert page.url.endswith(execution["execution_id"])
    assert (execution["triggered_by"], execution["result"]) == ("manual", "hello you ")


def test_a_pause_keeps_its_reason_and_its_end(server: WebServed, page: Page, name: str) -> None:
    made = server.schedule(name=name)
    page.goto(f"/schedules?q={name}")
    choose(page, page.get_by_role("button", name=f"Actions for {name}"), "Pause…")
    asked = dialog(page, f"Pause {name}")
    asked.get_by_label("Reason").fill("a migration")
    asked.get_by_label("Until").fill("2030-01-02T03:04")
    asked.get_by_role("button", name="Pause").click()
    expect(row(page, "Schedules", name)).to_contain_text("a migration")
    found = server.get(f"schedules/{made['schedule_id']}")
    # The reader's zone is five hours behind in winter.
    assert (found["pause_reason"], found["paused_until_ts"]) == ("a migration", "2030-01-02T08:04:00Z")


def test_a_schedule_is_deleted_only_after_a_question(server: WebServed, page: Page, name: str) -> None:
    server.schedule(name=name)
    page.goto(f"/schedules?q={name}")
    menu = page.get_by_role("button", name=f"Actions for {name}")
    choose(page, menu, "Delete…")
    asked = dialog(page, f"Delete {name}?")
    asked.get_by_role("button", name="Cancel").click()
    expect(row(page, "Schedules", name)).to_be_visible()
    choose(page, menu, "Delete…")
    asked.get_by_role("button", name="Delete").click()
    expect(note(page, f"Deleted {name}")).to_be_visible()
    expect(row(page, "Schedules", name)).to_have_count(0)
    assert server.get("schedules", name=name)["items"] == []


def test_filters_and_order_are_in_the_address_and_the_back_button_undoes_them(
    server: WebServed, page: Page, name: str
) -> None:
    first = server.schedule(name=f"{name}-a")
    server.schedule(name=f"{name}-b")
    server.post(f"schedules/{first['schedule_id']}/pause", {}, status=200)
    page.goto("/schedules")
    title(page, "Schedules")
    page.get_by_role("searchbox", name="Name or description").fill(name)
    rows = table(page, "Schedules").locator("tbody tr")
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Name", exact=True).click()
    expect(rows.first).to_contain_text(f"{name}-b")
    page.get_by_role("button", name=re.compile("^State")).first.click()
    page.get_by_role("menuitemcheckbox", name="paused").click()
    page.keyboard.press("Escape")
    expect(rows).to_have_count(1)
    assert f"q={name}" in page.url
    assert "sort=-name" in page.url
    assert "state=paused" in page.url
    page.go_back()
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text(f"{name}-b")
    page.reload()
    expect(rows.first).to_contain_text(f"{name}-b")


def test_many_are_paused_at_once_after_their_number_was_told(
    server: WebServed, page: Page, name: str
) -> None:
    for number in range(3):
        server.schedule(name=f"{name}-{number}")
    page.goto(f"/schedules?q={name}")
    page.get_by_role("checkbox", name=f"Choose {name}-0").click()
    chosen = page.get_by_role("region", name="Chosen schedules")
    expect(chosen).to_contain_text("1 chosen")
    chosen.get_by_role("button", name="Choose all that match").click()
    expect(chosen).to_contain_text("All that match are chosen")
    chosen.get_by_role("button", name="Pause").click()
    asked = dialog(page, "Pause: 3 schedules")
    asked.get_by_label("Reason").fill("all of them")
    asked.get_by_role("button", name="Pause 3").click()
    expect(note(page, "Paused: 3 schedules")).to_be_visible()
    found = server.get("schedules", q=name)["items"]
    assert [(each["paused"], each["pause_reason"]) for each in found] == [(True, "all of them")] * 3
    expect(table(page, "Schedules").get_by_text("all of them")).to_have_count(3)


def test_the_status_beside_the_list_tells_who_leads_how_many_what_is_next_and_what_failed(
    server: WebServed, page: Page, name: str
) -> None:
    server.executed(name=name, target={"kind": "function", "name": "fail"}, retry={"max_attempts": 1})
    paused = server.schedule(trigger={"kind": "interval", "minutes": 50})
    server.post(f"schedules/{paused['schedule_id']}/pause", {}, status=200)
    server.schedule(name=f"{name}-next", trigger={"kind": "interval", "minutes": 5})
    until(lambda: [each["name"] for each in server.get("status")["next_fires"][:1]] == [f"{name}-next"])
    page.goto("/schedules")
    status = page.get_by_role("complementary", name="Status")
    told = server.get("status")
    expect(status.get_by_role("region", name="Scheduler")).to_contain_text("running")
    expect(status.get_by_role("region", name="Scheduler")).to_contain_text(told["leaders"][0]["instance_id"])
    for state in ("active", "paused"):
        number = told["schedules"]["by_state"][state]
        assert number > 0
        expect(status.get_by_role("link", name=re.compile(f"^{state}"))).to_have_text(f"{state}{number}")
    expect(status.get_by_role("region", name="Next")).to_contain_text(f"{name}-next")
    failures = status.get_by_role("region", name="Recent failures")
    expect(failures.get_by_role("link").filter(has_text=name)).to_contain_text("as it was told to")
    status.get_by_role("link", name=re.compile("^paused")).click()
    expect(page).to_have_url(re.compile(r"state=paused"))
    page.get_by_role("button", name="Hide the status").click()
    expect(status).to_be_hidden()


def test_a_new_schedule_is_announced_and_moves_no_row_until_it_is_asked_for(
    server: WebServed, page: Page, name: str
) -> None:
    for letter in "bd":
        server.schedule(name=f"{name}-{letter}")
    page.goto(f"/schedules?q={name}")
    rows = table(page, "Schedules").locator("tbody tr")
    expect(rows).to_have_count(2)
    live(page)
    before = rows.nth(1).bounding_box()
    server.schedule(name=f"{name}-c")
    news = page.get_by_role("button", name="1 new — show")
    expect(news).to_be_visible()
    expect(rows).to_have_count(2)
    assert rows.nth(1).bounding_box() == before
    news.click()
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text(f"{name}-c")
    expect(news).to_be_hidden()


def test_a_change_by_somebody_else_is_shown_in_its_row_without_moving_it(
    server: WebServed, page: Page, name: str
) -> None:
    made = [server.schedule(name=f"{name}-{letter}") for letter in "abc"]
    page.goto(f"/schedules?q={name}&sort=-last_run_ts")
    rows = table(page, "Schedules").locator("tbody tr")
    expect(rows).to_have_count(3)
    live(page)
    order = rows.evaluate_all("rows => rows.map((row) => row.dataset.row)")
    last = next(each for each in made if each["schedule_id"] == order[2])
    server.ended(server.trigger(last["schedule_id"]))
    expect(rows.nth(2)).to_contain_text("success")
    expect(page.get_by_role("button", name="Order has changed — sort again")).to_be_visible()
    assert rows.evaluate_all("rows => rows.map((row) => row.dataset.row)") == order
    page.get_by_role("button", name="Order has changed — sort again").click()
    expect(rows.first).to_contain_text(last["name"])


def test_the_list_is_worked_by_keyboard_alone(server: WebServed, page: Page, name: str) -> None:
    for letter in "abc":
        server.schedule(name=f"{name}-{letter}")
    page.goto(f"/schedules?q={name}")
    rows = table(page, "Schedules").locator("tbody tr")
    expect(rows).to_have_count(3)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.row !== undefined"):
            break
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press(" ")
    expect(page.get_by_role("region", name="Chosen schedules")).to_contain_text("1 chosen")
    page.keyboard.press("Enter")
    expect(dialog(page, f"{name}-b")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog(page, f"{name}-b")).to_be_hidden()
    expect(rows.nth(1)).to_be_focused()
    menu = page.get_by_role("button", name=f"Actions for {name}-b")
    for _ in range(10):
        page.keyboard.press("Tab")
        if menu.evaluate("element => element === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Run now")).to_be_focused()
    page.keyboard.press("Enter")
    expect(note(page, f"Running {name}-b now")).to_be_visible()


def test_on_a_phone_rows_are_cards_with_the_same_powers(
    server: WebServed, open_page: OpenPage, name: str
) -> None:
    made = server.schedule(name=name)
    page = open_page(width=390)
    page.goto(f"/schedules?q={name}")
    card = page.get_by_role("list", name="Schedules").get_by_role("listitem")
    expect(card).to_contain_text(name)
    switch(page, name).click()
    expect(card).to_contain_text("paused")
    assert server.get(f"schedules/{made['schedule_id']}")["paused"]
    page.get_by_role("button", name="Navigation").click()
    dialog(page, "Navigation").get_by_role("link", name="Executions").click()
    title(page, "Executions")
    expect(dialog(page, "Navigation")).to_be_hidden()


def test_a_viewer_sees_every_act_and_why_it_is_not_theirs(
    server: WebServed, open_page: OpenPage, name: str
) -> None:
    made = server.schedule(name=name)
    page = open_page("viewer")
    page.goto(f"/schedules?q={name}")
    steer = "Takes the role operator; yours is viewer."
    expect(switch(page, name)).to_be_disabled()
    expect(switch(page, name)).to_have_accessible_description(steer)
    switch(page, name).click(force=True)
    expect(switch(page, name)).to_be_checked()
    page.get_by_role("button", name=f"Actions for {name}").click()
    for item, why in (
        ("Run now", steer),
        ("Pause…", steer),
        ("Delete…", "Takes the role editor; yours is viewer."),
    ):
        shown = page.get_by_role("menuitem", name=item)
        expect(shown).to_be_disabled()
        expect(shown).to_contain_text(why)
        shown.click(force=True)
    page.keyboard.press("Escape")
    page.get_by_role("checkbox", name=f"Choose {name}").click()
    for act in ("Run now", "Pause", "Resume", "Delete"):
        expect(
            page.get_by_role("region", name="Chosen schedules").get_by_role("button", name=act)
        ).to_be_disabled()
    assert server.get(f"schedules/{made['schedule_id']}")["aggregate_version"] == made["aggregate_version"]
    assert server.get("executions", schedule_id=made["schedule_id"])["items"] == []


def test_an_operator_may_steer_and_not_edit(server: WebServed, open_page: OpenPage, name: str) -> None:
    server.schedule(name=name)
    page = open_page("operator")
    page.goto(f"/schedules?q={name}")
    expect(page.get_by_role("button", name="New schedule")).to_be_disabled()
    switch(page, name).click()
    expect(row(page, "Schedules", name)).to_contain_text("paused")
