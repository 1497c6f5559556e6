"""Whatever users and their code write is shown as text: never as markup, never as a script."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.hosts import unique
from tests.web.pages import sheet, table, title
from tests.web.served import HOSTILE, WebServed

NAME = HOSTILE
TELLS = {"kind": "function", "name": "tell", "args": {"text": HOSTILE}}
FAILS = {"kind": "function", "name": "fail", "args": {"text": HOSTILE}}


def is_text(page: Page, times: int = 1) -> None:
    """It is there to be read, and nothing came of it. What came of it by script, the page's watch notices."""
    expect(
        page.get_by_text("<script>alert(2)</script>").locator("visible=true").nth(times - 1)
    ).to_be_visible()
    assert page.locator(".injected").count() == 0
    assert page.locator("img[src=x]").count() == 0
    assert page.locator("script:not([src])").count() == 0


@pytest.fixture(scope="module")
def scene(server: WebServed) -> dict[str, Any]:
    schedule, [failed] = server.executed(
        name=NAME,
        description=HOSTILE,
        labels={HOSTILE: HOSTILE},
        target=FAILS,
        retry={"max_attempts": 1},
    )
    told_of, [told] = server.executed(name=f"{HOSTILE} 2", target=TELLS)
    server.post(f"schedules/{schedule['schedule_id']}/pause", {"reason": HOSTILE}, status=200)
    server.post("calendars", {"name": unique("calendar"), "description": HOSTILE, "days": ["2030-01-01"]})
    server.post("keys", {"name": HOSTILE, "role": "viewer"})
    return {
        "schedule": schedule["schedule_id"],
        "told of": told_of["schedule_id"],
        "failed": failed["execution_id"],
        "told": told["execution_id"],
    }


def test_in_the_overview(page: Page, scene: dict[str, Any]) -> None:
    page.goto("/")
    expect(page.get_by_role("region", name="Recent failures")).to_contain_text(HOSTILE)
    is_text(page)


def test_in_the_list_of_schedules_with_its_reasons_menus_and_questions(
    page: Page, scene: dict[str, Any]
) -> None:
    page.goto("/schedules")
    shown = table(page, "Schedules")
    expect(shown.get_by_role("link", name=HOSTILE, exact=True)).to_be_visible()
    is_text(page, times=3)
    page.get_by_role("button", name=f"Actions for {NAME}", exact=True).click()
    page.get_by_role("menuitem", name="Delete…").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"Delete {HOSTILE}?")
    is_text(page)
    page.keyboard.press("Escape")
    page.get_by_role("switch", name=f"{NAME} is enabled", exact=True).hover()
    page.get_by_role("checkbox", name=f"Choose {NAME}", exact=True).click()
    page.get_by_role("region", name="Chosen schedules").get_by_role("button", name="Run now").click()
    expect(page.get_by_role("dialog")).to_contain_text(HOSTILE)
    is_text(page)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").filter(has_text=HOSTILE).first).to_be_visible()
    is_text(page)


def test_in_notes_on_what_was_done(page: Page, scene: dict[str, Any]) -> None:
    page.goto("/schedules")
    switch = page.get_by_role("switch", name=f"{HOSTILE} 2 is enabled")
    switch.click()
    expect(page.get_by_role("region", name="Notes")).to_contain_text(f"Paused {HOSTILE} 2")
    page.get_by_role("button", name="Undo").click()
    expect(switch).to_be_checked()
    is_text(page)


@pytest.mark.parametrize("tab", ["summary", "executions", "versions", "code"])
def test_in_every_part_of_a_schedule(page: Page, scene: dict[str, Any], tab: str) -> None:
    page.goto(f"/schedules/{scene['schedule']}?tab={tab}")
    title(page, NAME)
    expect(page.get_by_role("tabpanel")).to_contain_text("<script>alert(2)</script>")
    is_text(page, times=2)


def test_in_the_form_and_what_it_would_change(page: Page, scene: dict[str, Any]) -> None:
    page.goto(f"/schedules/{scene['schedule']}?do=edit")
    form = sheet(page, f"Edit {NAME}")
    expect(form.get_by_label("Description")).to_have_value(HOSTILE)
    form.get_by_label("Description").fill(f"{HOSTILE} changed")
    form.get_by_role("button", name="Review changes").click()
    expect(form).to_contain_text(f"{HOSTILE} changed")
    is_text(page)


def test_in_executions_errors_tracebacks_results_and_logs(page: Page, scene: dict[str, Any]) -> None:
    page.goto("/executions")
    expect(table(page, "Executions")).to_contain_text(HOSTILE)
    is_text(page, times=2)
    page.goto(f"/executions/{scene['failed']}")
    expect(page.get_by_role("region", name="Error")).to_contain_text(HOSTILE)
    expect(page.get_by_role("region", name="the traceback")).to_contain_text(HOSTILE)
    is_text(page, times=3)
    page.goto(f"/executions/{scene['told']}")
    expect(page.get_by_role("log", name="Log")).to_contain_text(HOSTILE)
    expect(page.get_by_role("region", name="Result")).to_contain_text("<script>alert(2)</script>")
    is_text(page, times=3)


def test_in_the_timeline_the_cluster_and_access(page: Page, scene: dict[str, Any]) -> None:
    page.goto("/timeline")
    expect(page.get_by_role("list", name="Schedules over time")).to_contain_text(HOSTILE)
    is_text(page)
    page.goto("/timeline?view=table")
    is_text(page)
    page.goto("/cluster/tasks/fail")
    expect(page.get_by_role("dialog", name="fail")).to_contain_text(HOSTILE)
    for tab in ("keys", "calendars", "audit"):
        page.goto(f"/access/{tab}")
        is_text(page)


def test_in_the_address(page: Page) -> None:
    page.goto("/schedules", wait_until="commit")
    page.goto(f"/schedules?q={HOSTILE}&label={HOSTILE}&sort={HOSTILE}")
    title(page, "Schedules")
    assert page.locator(".injected").count() == 0
    page.goto("/no/such/<b class=injected>place</b>")
    title(page, "Nothing here")
    assert page.locator(".injected").count() == 0
