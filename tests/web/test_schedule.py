"""One schedule: over the list and on a page of its own, its history, its versions, and what is done to it."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.answers import made
from tests.api.hosts import unique
from tests.api.served import OPERATOR_KEY, V1
from tests.waiting import until
from tests.web.conftest import OpenPage
from tests.web.pages import card, dialog, live, note, row, sheet, tab, title
from tests.web.served import WebServed


@pytest.fixture
def name() -> str:
    return unique("web")


def changed(server: WebServed, schedule: dict[str, Any], **fields: Any) -> dict[str, Any]:
    path = f"{V1}/schedules/{schedule['schedule_id']}"
    answer = server.by(OPERATOR_KEY).patch(path, json=fields, headers={"X-Foliot-Reason": "for a test"})
    found: dict[str, Any] = made(answer, 200)
    return found


def test_details_open_over_the_list_and_as_a_page_of_their_own(
    server: WebServed, page: Page, name: str
) -> None:
    schedule, [execution] = server.executed(
        name=name,
        description="Greets whoever is there",
        trigger={"kind": "cron", "expression": "0 3 * * *", "timezone": "Europe/Berlin"},
        labels={"team": "pay"},
        timeout_seconds=240,
    )
    page.goto(f"/schedules?q={name}")
    row(page, "Schedules", name).get_by_role("link", name=name).click()
    panel = sheet(page, name)
    for text in (
        "Greets whoever is there",
        "0 3 * * *",
        "Europe/Berlin",
        "greet",
        "team: pay",
        "at most 4 min",
    ):
        expect(panel).to_contain_text(text)
    expect(panel.get_by_role("link", name="success")).to_have_attribute(
        "href", f"/executions/{execution['execution_id']}"
    )
    assert f"q={name}" in page.url, "the list is still the same behind it"
    panel.get_by_role("button", name="Open as a page").click()
    title(page, name)
    expect(page).to_have_url(re.compile(f"/schedules/{schedule['schedule_id']}"))
    expect(page.get_by_role("main")).to_contain_text("Greets whoever is there")


def test_a_manual_run_is_not_called_a_scheduled_one(server: WebServed, page: Page, name: str) -> None:
    schedule, _ = server.executed(name=name)
    page.goto(f"/schedules/{schedule['schedule_id']}")
    runs = page.get_by_text("Scheduled runs", exact=True).locator("..")
    expect(runs).to_contain_text("0")
    expect(runs.get_by_role("link")).to_have_attribute("href", re.compile("triggered_by=scheduler"))


def test_the_next_times_are_told_in_both_zones_with_changes_of_clocks(
    server: WebServed, page: Page, name: str
) -> None:
    zone = "Europe/Berlin"
    schedule = server.schedule(
        name=name, trigger={"kind": "cron", "expression": "30 2 28 3 *", "timezone": zone}
    )
    page.goto(f"/schedules/{schedule['schedule_id']}")
    times = card(page, "Next times").get_by_role("row")
    expect(times).to_have_count(11)
    expect(card(page, "Next times")).to_contain_text("Yours, America/New_York")
    # 28 March is the last Sunday of the month, on which clocks go forward, in 2032.
    expect(times.filter(has_text="2032")).to_contain_text("clocks go forward")
    expect(times.filter(has_text="2033")).not_to_contain_text("clocks")


def test_the_history_is_read_page_by_page_latest_first(server: WebServed, page: Page, name: str) -> None:
    schedule, executions = server.executed(30, name=name)
    page.goto(f"/schedules/{schedule['schedule_id']}?tab=executions")
    links = page.get_by_role("tabpanel", name="Executions").get_by_role("listitem").get_by_role("link")
    expect(links).to_have_count(25)
    page.get_by_role("button", name="Show more").click()
    expect(links).to_have_count(30)
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()
    shown = links.evaluate_all("links => links.map((link) => link.pathname.split('/').at(-1))")
    assert sorted(shown) == sorted(each["execution_id"] for each in executions)
    times = links.evaluate_all("links => links.map((link) => link.querySelector('time').dateTime)")
    assert times == sorted(times, reverse=True)


def test_a_run_that_goes_on_is_added_to_the_history_while_it_is_read(
    server: WebServed, page: Page, name: str
) -> None:
    schedule, _ = server.executed(2, name=name)
    page.goto(f"/schedules/{schedule['schedule_id']}?tab=executions")
    rows = page.get_by_role("tabpanel", name="Executions").get_by_role("listitem")
    expect(rows).to_have_count(2)
    live(page)
    server.ended(server.trigger(schedule["schedule_id"]))
    page.get_by_role("button", name="1 new — show").click()
    expect(rows).to_have_count(3)


def test_the_ledger_says_what_became_of_each_time(server: WebServed, page: Page, name: str) -> None:
    schedule = server.schedule(
        name=name,
        trigger={"kind": "interval", "seconds": 1},
        target={"kind": "function", "name": "hold"},
        overlap={"policy": "skip", "max_instances": 1},
    )
    schedule_id = schedule["schedule_id"]

    def states() -> set[str]:
        fires = server.get(f"schedules/{schedule_id}/fires", n=5)["items"]
        return {each["state"] for each in fires}

    until(lambda: {"fired", "skipped"} <= states())
    page.goto(f"/schedules/{schedule_id}?tab=fires")
    panel = page.get_by_role("tabpanel", name="Fires")
    expect(panel.get_by_role("listitem").filter(has_text="skipped").first).to_contain_text("run")
    expect(panel.get_by_role("listitem").filter(has_text=re.compile("fired|late")).first).to_be_visible()
    server.post(f"schedules/{schedule_id}/pause", {}, status=200)
    server.let_go(name)


def test_run_now_takes_other_arguments_by_the_schema_of_the_task(
    server: WebServed, page: Page, name: str
) -> None:
    schedule = server.schedule(name=name)
    page.goto(f"/schedules/{schedule['schedule_id']}")
    page.get_by_role("button", name="Run now…").click()
    asked = dialog(page, f"Run {name} now")
    expect(asked.get_by_label("name (required)")).to_have_value("you")
    asked.get_by_label("times").fill("many")
    asked.get_by_role("button", name="Run now").click()
    expect(asked.get_by_label("times")).to_have_attribute("aria-invalid", "true")
    asked.get_by_label("times").fill("2")
    asked.get_by_role("button", name="Run now").click()
    expect(note(page, f"Running {name} now")).to_be_visible()
    [execution] = server.get("executions", schedule_id=schedule["schedule_id"])["items"]
    assert server.ended(execution["execution_id"])["result"] == "hello you hello you "


def test_versions_tell_who_changed_what_and_an_old_one_is_restored(
    server: WebServed, page: Page, name: str
) -> None:
    schedule = server.schedule(name=name, timeout_seconds=60)
    changed(server, schedule, timeout_seconds=120)
    page.goto(f"/schedules/{schedule['schedule_id']}?tab=versions")
    panel = page.get_by_role("tabpanel", name="Versions")
    panel.get_by_role("button", name=re.compile("v2")).click()
    for text in ("edited", "operator", "60", "120"):
        expect(panel).to_contain_text(text)
    panel.get_by_role("button", name=re.compile("v1")).click()
    panel.get_by_role("button", name="Restore").click()
    asked = dialog(page, "Restore version 1?")
    expect(asked).to_contain_text("120")
    asked.get_by_label("Reason").fill("it was better")
    asked.get_by_role("button", name="Restore").click()
    expect(note(page, f"{name} is as in version 1")).to_be_visible()
    found = server.get(f"schedules/{schedule['schedule_id']}")
    assert (found["timeout_seconds"], found["aggregate_version"]) == (60, 3)
    expect(panel.get_by_role("button", name=re.compile("v3"))).to_contain_text("it was better")


def test_a_backfill_shows_how_far_it_has_come(server: WebServed, page: Page, name: str) -> None:
    schedule = server.schedule(
        name=name, trigger={"kind": "cron", "expression": "0 12 * * *", "timezone": "UTC"}
    )
    page.goto(f"/schedules/{schedule['schedule_id']}?do=backfill")
    asked = dialog(page, f"Backfill {name}")
    asked.get_by_label("From").fill("2026-01-01T00:00")
    asked.get_by_label("Up to, not including").fill("2026-01-04T00:00")
    asked.get_by_role("button", name="Backfill").click()
    expect(asked).to_contain_text("3 of 3 ended, 3 made")
    asked.get_by_role("button", name="Close").click()
    expect(page.get_by_role("region", name="Backfills")).to_contain_text("done")
    items = server.get("executions", schedule_id=schedule["schedule_id"])["items"]
    assert [each["triggered_by"] for each in items] == ["backfill"] * 3


def test_it_is_copied_as_a_command_a_file_code_and_a_request(
    server: WebServed, page: Page, name: str
) -> None:
    schedule = server.schedule(name=name, timeout_seconds=61)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/schedules/{schedule['schedule_id']}?tab=code")
    for kind in ("CLI", "YAML", "Python", "curl"):
        page.get_by_role("radio", name=kind).check(force=True)
        page.get_by_role("button", name=f"Copy the {kind}").click()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert name in copied
        assert "61" in copied
    body = json.loads(copied[copied.index("{") : copied.rindex("}") + 1])
    server.by(OPERATOR_KEY).delete(f"{V1}/schedules/{schedule['schedule_id']}")
    again = server.post("schedules", body)
    assert (again["timeout_seconds"], again["target"]) == (61, schedule["target"])


def test_the_parts_are_reached_by_keyboard(server: WebServed, page: Page, name: str) -> None:
    schedule = server.schedule(name=name)
    page.goto(f"/schedules/{schedule['schedule_id']}")
    tab(page, "Summary").focus()
    for part in ("Fires", "Executions", "Versions", "Copy as"):
        page.keyboard.press("ArrowRight")
        expect(tab(page, part)).to_be_focused()
        expect(tab(page, part)).to_have_attribute("aria-selected", "true")
    assert "tab=code" in page.url


def test_a_viewer_may_look_and_is_told_why_nothing_else(
    server: WebServed, open_page: OpenPage, name: str
) -> None:
    schedule = server.schedule(name=name)
    page = open_page("viewer")
    page.goto(f"/schedules/{schedule['schedule_id']}")
    for button, role in (("Run now…", "operator"), ("Pause…", "operator"), ("Edit", "editor")):
        shown = page.get_by_role("button", name=button)
        expect(shown).to_be_disabled()
        expect(shown).to_have_accessible_description(f"Takes the role {role}; yours is viewer.")


def test_a_schedule_that_is_not_there_says_so(page: Page) -> None:
    page.goto("/schedules/01a1e2f0-d912-75ab-a399-97cb9b178202")
    title(page, "No such schedule")
