"""The timeline and the cluster: what is planned and was, who runs, who leads, and what is switched off."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.api.hosts import unique
from tests.waiting import until
from tests.web.conftest import OpenPage
from tests.web.pages import card, dialog, note, row, table, title
from tests.web.served import WebServed


@pytest.fixture
def name() -> str:
    return unique("web")


# --- the timeline -----------------------------------------------------------------------------------


def test_the_timeline_shows_what_was_and_what_is_planned_of_each_schedule(
    server: WebServed, page: Page, name: str
) -> None:
    server.executed(
        name=name,
        trigger={"kind": "cron", "expression": "0 * * * *"},
        target={"kind": "function", "name": "fail"},
        retry={"max_attempts": 1},
    )
    page.goto("/timeline")
    title(page, "Timeline")
    line = page.get_by_role("list", name="Schedules over time").get_by_role("listitem").filter(has_text=name)
    expect(line.get_by_role("link", name=re.compile("1 failed")).first).to_be_visible()
    expect(line.get_by_role("link", name=re.compile("planned")).first).to_be_visible()
    expect(page.get_by_role("list", name="Legend")).to_contain_text("failed")
    line.get_by_role("link", name=re.compile("1 failed")).first.click()
    title(page, "Executions")
    expect(row(page, "Executions", name)).to_contain_text("failed")


def test_what_the_timeline_shows_is_in_the_address_and_in_a_table_too(
    server: WebServed, page: Page, name: str
) -> None:
    server.executed(name=name)
    page.goto("/timeline")
    page.get_by_role("radio", name=re.compile("week", re.I)).check(force=True)
    expect(page).to_have_url(re.compile("span="))
    shown = page.get_by_role("main").get_by_role("status").first
    before = shown.inner_text()
    page.get_by_role("button", name="Earlier").click()
    expect(shown).not_to_have_text(before)
    expect(page).to_have_url(re.compile("from="))
    page.get_by_role("button", name="Now", exact=True).click()
    expect(shown).to_have_text(before)
    page.get_by_role("button", name="As a table").click()
    figures = card(page, "By schedule, the busiest first").get_by_role("row").filter(has_text=name)
    expect(figures).to_be_visible()
    page.reload()
    expect(figures).to_be_visible()
    assert "view=table" in page.url


def test_the_cells_of_the_timeline_are_reached_by_arrows(server: WebServed, page: Page, name: str) -> None:
    server.schedule(name=name, trigger={"kind": "cron", "expression": "0 * * * *"})
    page.goto("/timeline")
    line = page.get_by_role("list", name="Schedules over time").get_by_role("listitem").filter(has_text=name)
    cells = line.locator("[data-bin]")
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    expect(cells.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    title(page, name)


# --- the cluster ------------------------------------------------------------------------------------


def test_the_cluster_tells_who_runs_who_leads_and_what_they_know(server: WebServed, page: Page) -> None:
    page.goto("/cluster")
    title(page, "Cluster")
    [instance] = server.get("instances")["items"]
    shown = row(page, "Instances", instance["instance_id"])
    for text in ("live", "api", "scheduler", "worker", "shard 0"):
        expect(shown).to_contain_text(text)
    shown.get_by_role("link").first.click()
    expect(page.get_by_role("dialog")).to_contain_text(instance["instance_id"])
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Leaders", exact=True).click()
    expect(row(page, "Leaders", instance["instance_id"])).to_contain_text("led")
    page.get_by_role("navigation", name="Parts of the cluster").get_by_role("link", name="Workers").click()
    for task in ("greet", "hold"):
        expect(row(page, "Workers", instance["instance_id"])).to_contain_text(re.compile(f"{task}|more"))


def test_an_instance_is_drained_with_a_reason_and_goes_on(server: WebServed, page: Page) -> None:
    [instance] = server.get("instances")["items"]
    page.goto(f"/cluster/instances/{instance['instance_id']}")
    shown = page.get_by_role("dialog").first
    try:
        shown.get_by_role("button", name="Drain", exact=True).click()
        asked = dialog(page, re.compile("^Drain "))
        asked.get_by_label("Reason").fill("a new version")
        asked.get_by_role("button", name="Drain", exact=True).click()
        expect(shown).to_contain_text("draining")
        [told] = server.get("instances")["items"]
        assert told["is_draining"] is True
        shown.get_by_role("button", name="Let it go on").click()
        expect(shown).not_to_contain_text("draining")
    finally:
        server.post(f"instances/{instance['instance_id']}/resume", {}, status=200)


def test_a_queue_is_paused_with_a_reason_and_resumed(
    server: WebServed, page: Page, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Workers look at once, and not every other second, which queues are paused.
    monkeypatch.setattr("foliot.worker.worker.QUEUES_EVERY_S", 0.0)
    queue = unique("queue")
    schedule = server.schedule(name=name, queue=queue)
    page.goto("/cluster/queues")
    shown = row(page, "Queues", queue)
    shown.get_by_role("button", name="Pause…").click()
    asked = dialog(page, f"Pause queue {queue}?")
    asked.get_by_label("Reason").fill("maintenance")
    asked.get_by_role("button", name="Pause").click()
    expect(shown).to_contain_text("paused")
    execution_id = server.trigger(schedule["schedule_id"])
    expect(shown.locator("dl")).to_contain_text(re.compile(r"medium\s*1"))
    assert server.get(f"executions/{execution_id}")["status"] == "pending"
    shown.get_by_role("button", name="Resume").click()
    expect(note(page, f"Resumed queue {queue}")).to_be_visible()
    assert server.ended(execution_id)["status"] == "success"


def test_a_task_function_is_switched_off_by_the_operator_alone(
    server: WebServed, open_page: OpenPage, name: str
) -> None:
    schedule = server.schedule(name=name, target={"kind": "function", "name": "tell", "args": {"text": "a"}})
    admin = open_page("admin")
    admin.goto("/cluster/tasks")
    switch = admin.get_by_role("switch", name="tell is switched on")
    expect(switch).to_be_disabled()
    expect(switch).to_have_accessible_description(re.compile("Takes the operator's own key"))

    page = open_page("operator's key")
    page.goto("/cluster/tasks")
    switch = page.get_by_role("switch", name="tell is switched on")
    switch.click()
    dialog(page, "Switch tell off?").get_by_role("button", name="Switch off").click()
    expect(switch).not_to_be_checked()
    expect(page.get_by_role("region", name="Schedules whose task can't run")).to_contain_text(name)
    assert not server.get("task-functions/tell")["is_active"]
    switch.click()
    expect(note(page, "Switched tell on")).to_be_visible()
    expect(switch).to_be_checked()
    until(lambda: server.get("task-functions/tell")["is_active"])
    row(page, "Task functions", "tell").get_by_role("link").first.click()
    panel = page.get_by_role("dialog", name="tell")
    expect(panel).to_contain_text("Log a text, and return it.")
    expect(panel.get_by_role("link", name=schedule["name"])).to_be_visible()


def test_a_viewer_may_not_pause_a_queue(server: WebServed, open_page: OpenPage, name: str) -> None:
    queue = unique("queue")
    server.schedule(name=name, queue=queue)
    page = open_page("viewer")
    page.goto("/cluster/queues")
    pause = row(page, "Queues", queue).get_by_role("button", name="Pause…")
    expect(pause).to_be_disabled()
    expect(pause).to_have_accessible_description("Takes the role operator; yours is viewer.")


def test_keys_go_to_screens_and_are_listed(page: Page) -> None:
    page.goto("/")
    title(page, "Overview")
    page.keyboard.press("g")
    page.keyboard.press("c")
    title(page, "Cluster")
    page.keyboard.press("?")
    keys = dialog(page, "Keyboard")
    expect(keys).to_contain_text("Find a schedule or a screen")
    keys.get_by_role("link", name="About Foliot").click()
    expect(page).to_have_url("/about")
    expect(page.get_by_role("main")).to_contain_text(re.compile(r"\d+\.\d+\.\d+"))
    assert table(page, "Instances").count() == 0
