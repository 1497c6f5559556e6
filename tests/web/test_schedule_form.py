"""Making and changing a schedule: fields, text and words in step, what would change, and two at once."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.api.hosts import unique
from tests.api.served import OPERATOR_KEY, V1
from tests.web.conftest import OpenPage
from tests.web.pages import choose, note, sheet, title
from tests.web.served import WebServed
from tests.web.test_everywhere import AXE


@pytest.fixture
def name() -> str:
    return unique("web")


def new_form(page: Page) -> Locator:
    page.goto("/schedules/new")
    form = sheet(page, "New schedule")
    expect(form.get_by_role("textbox", name="Name", exact=True)).to_be_visible()
    return form


def pick(form: Locator, label: str) -> None:
    """One of the choices that are shown in a row."""
    form.get_by_role("radio", name=label, exact=True).check(force=True)


def pick_task(form: Locator, letters: str) -> None:
    form.get_by_role("combobox", name="Task function").fill(letters)
    form.get_by_role("listbox", name="Task functions").get_by_role("option").first.click()


def edit(page: Page, schedule: dict[str, Any]) -> Locator:
    page.goto(f"/schedules/{schedule['schedule_id']}?do=edit")
    form = sheet(page, f"Edit {schedule['name']}")
    expect(form.get_by_role("textbox", name="Name", exact=True)).to_have_value(schedule["name"])
    return form


def test_a_schedule_is_made_from_the_form(server: WebServed, page: Page, name: str) -> None:
    page.goto("/schedules")
    page.get_by_role("button", name="New schedule").first.click()
    form = sheet(page, "New schedule")
    form.get_by_role("textbox", name="Name", exact=True).fill(name)
    form.get_by_label("Description").fill("Made by hand")
    pick(form, "Every day")
    form.get_by_label("Time of day").fill("06:45")
    pick_task(form, "gree")
    form.get_by_label("name (required)").fill("everybody")
    form.get_by_role("button", name="If something goes wrong").click()
    form.get_by_label("How long an attempt may take", exact=True).fill("2")
    form.get_by_role("button", name="Queue, priority, labels").click()
    form.get_by_label("Queue", exact=True).fill("reports")
    form.get_by_role("button", name="Add a label").click()
    form.get_by_label("Name of label 1").fill("team")
    form.get_by_label("Value of label 1").fill("pay")
    form.get_by_role("button", name="Create").click()
    expect(note(page, f"Created {name}")).to_be_visible()
    expect(sheet(page, name)).to_contain_text("Made by hand")
    [found] = server.get("schedules", name=name)["items"]
    assert found["trigger"] == {"kind": "cron", "expression": "45 6 * * *", "timezone": "America/New_York"}
    assert found["target"]["name"] == "greet"
    assert found["target"]["args"]["name"] == "everybody"
    assert found["timeout_seconds"] == 120
    assert (found["queue"], found["labels"], found["managed_by"]) == ("reports", {"team": "pay"}, "ui")


def test_sentence_expression_and_fields_of_cron_say_the_same(page: Page) -> None:
    form = new_form(page)
    expression = form.get_by_label("Expression")
    preview = form.get_by_role("region", name="Preview")
    pick(form, "Every few minutes")
    form.get_by_label("Every how many minutes").select_option("15")
    expect(expression).to_have_value("*/15 * * * *")
    expect(form.get_by_label("Minute", exact=True)).to_have_value("*/15")
    expression.fill("0 9 * * 1,5")
    expect(form.get_by_role("radio", name="On weekdays")).to_be_checked()
    expect(form.get_by_role("checkbox", name="Friday")).to_be_checked()
    expect(form.get_by_role("checkbox", name="Tuesday")).not_to_be_checked()
    expect(form.get_by_label("Hour", exact=True)).to_have_value("9")
    expect(preview).to_contain_text("Friday")
    form.get_by_label("Hour", exact=True).fill("17")
    expect(expression).to_have_value("0 17 * * 1,5")
    expect(form.get_by_label("Time of day")).to_have_value("17:00")
    expect(preview.get_by_role("row").nth(1)).to_contain_text("17:00")


def test_the_preview_follows_the_typing_in_both_zones_with_warnings(page: Page) -> None:
    form = new_form(page)
    preview = form.get_by_role("region", name="Preview")
    form.get_by_label("Expression").fill("30 2 * * *")
    form.get_by_label("Time zone").fill("Asia/Tokyo")
    expect(preview).to_contain_text("America/New_York, yours")
    expect(preview.get_by_role("row").nth(1)).to_contain_text("02:30")
    expect(preview.get_by_role("row").nth(1)).to_contain_text(re.compile("12:30|13:30"))
    form.get_by_label("Expression").fill("0 0 31 2 *")
    expect(preview).to_contain_text("Warning:")
    expect(preview).to_contain_text("It has no time to come.")
    form.get_by_label("Expression").fill("61 * * * *")
    expect(form.get_by_label("Expression")).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_label("Expression")).to_have_accessible_description(re.compile("61|minute", re.I))


def test_what_is_missing_or_refused_is_said_at_its_field(server: WebServed, page: Page, name: str) -> None:
    taken = server.schedule(name=name)
    form = new_form(page)
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_role("textbox", name="Name", exact=True)).to_be_focused()
    expect(form.get_by_role("textbox", name="Name", exact=True)).to_have_attribute("aria-invalid", "true")
    form.get_by_role("textbox", name="Name", exact=True).fill(taken["name"])
    pick_task(form, "greet")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_label("name (required)")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("name (required)").fill("you")
    form.get_by_role("button", name="Create").click()
    expect(form).to_contain_text(re.compile("taken|exists|already", re.I))
    assert len(server.get("schedules", name=name)["items"]) == 1


@pytest.mark.parametrize(
    ("kind", "fill", "expected"),
    [
        ("Interval", {"How many": "90"}, {"kind": "interval", "frequency_time": 90}),
        ("Recurrence rule", {"Rule": "FREQ=MONTHLY;BYDAY=-1FR"}, {"kind": "rrule"}),
        ("After each run", {"How long after": "30"}, {"kind": "delay"}),
    ],
)
def test_other_kinds_of_triggers_have_their_own_fields(
    server: WebServed, page: Page, name: str, kind: str, fill: dict[str, str], expected: dict[str, Any]
) -> None:
    form = new_form(page)
    form.get_by_role("textbox", name="Name", exact=True).fill(name)
    pick(form, kind)
    for label, text in fill.items():
        form.get_by_label(label, exact=True).fill(text)
    pick_task(form, "fail")
    form.get_by_role("button", name="Create").click()
    expect(note(page, f"Created {name}")).to_be_visible()
    [found] = server.get("schedules", name=name)["items"]
    assert found["trigger"].items() >= expected.items()


def test_an_http_target_keeps_its_parts_and_kinds_that_can_not_be_say_why(
    server: WebServed, page: Page, name: str
) -> None:
    form = new_form(page)
    form.get_by_role("textbox", name="Name", exact=True).fill(name)
    for each in server.get("kinds")["items"]:
        if each["family"] == "target" and not each["is_available"]:
            closed = form.get_by_role("radio", name=each["display_name"])
            if closed.count() == 1:
                expect(closed).to_be_disabled()
    pick(form, "HTTP")
    form.get_by_label("Address").fill("https://agent.example/run")
    form.get_by_role("button", name="Create").click()
    expect(note(page, f"Created {name}")).to_be_visible()
    [found] = server.get("schedules", name=name)["items"]
    assert found["target"]["kind"] == "http"
    assert found["target"]["url"] == "https://agent.example/run"


PLUGGED_IN: list[dict[str, Any]] = [
    {
        "family": "trigger",
        "name": "sun",
        "display_name": "Sunrise",
        "description": "Fires when the sun rises.",
        "is_available": True,
        "schema": {
            "$defs": {
                "Place": {
                    "type": "object",
                    "properties": {"latitude": {"type": "number", "maximum": 90, "title": "Latitude"}},
                    "required": ["latitude"],
                }
            },
            "properties": {
                "kind": {"const": "sun", "default": "sun"},
                "place": {"$ref": "#/$defs/Place", "title": "Place", "description": "Where it rises."},
            },
            "required": ["place"],
        },
    },
    {
        "family": "target",
        "name": "mqtt",
        "display_name": "MQTT message",
        "description": "Publishes a message.",
        "is_available": True,
        "schema": {
            "properties": {
                "kind": {"const": "mqtt", "default": "mqtt"},
                "topic": {"type": "string", "title": "Topic", "description": "Where to publish."},
                "tags": {"type": "array", "items": {"type": "string"}, "title": "Tags"},
                "retain": {"type": "boolean", "default": False, "title": "Retain"},
            },
            "required": ["topic"],
        },
    },
]


def test_kinds_that_plug_ins_add_have_forms_from_their_schemas(page: Page, name: str, axe: str) -> None:
    asked: list[Any] = []

    def list_kinds(route: Route) -> None:
        known = route.fetch().json()
        route.fulfill(json={**known, "items": known["items"] + PLUGGED_IN})

    def show_daily(route: Route) -> None:
        daily = {"kind": "cron", "expression": "0 6 * * *", "timezone": "UTC"}
        route.continue_(post_data={**(route.request.post_data_json or {}), "trigger": daily})

    def refuse(route: Route) -> None:
        if route.request.method != "POST":
            route.fallback()
            return
        asked.append(route.request.post_data_json)
        wrong = {"pointer": "/target/topic", "code": "value", "detail": "has no broker", "hint": ""}
        problem = {"code": "invalid", "detail": "has 1 problem", "errors": [wrong]}
        route.fulfill(status=422, content_type="application/problem+json", body=json.dumps(problem))

    page.route("**/api/v1/kinds", list_kinds)
    page.route("**/api/v1/schedules/preview", show_daily)
    page.route("**/api/v1/schedules", refuse)
    form = new_form(page)
    form.get_by_role("textbox", name="Name", exact=True).fill(name)
    pick(form, "Sunrise")
    pick(form, "MQTT message")
    form.get_by_label("Topic (required)").fill("sun/up")
    form.get_by_label("Tags").fill("a\nb")
    form.get_by_label("Retain").select_option("true")
    form.get_by_role("button", name="Create").click()
    latitude = form.get_by_role("group", name="Place").get_by_label("Latitude (required)")
    expect(latitude).to_be_focused()
    expect(latitude).to_have_accessible_description("Needs a value.")
    latitude.fill("52.5")
    form.get_by_role("button", name="Create").click()
    topic = form.get_by_label("Topic (required)")
    expect(topic).to_have_attribute("aria-invalid", "true")
    expect(topic).to_have_accessible_description(re.compile("Where to publish.*Has no broker"))
    preview = form.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("At 06:00")
    expect(preview.locator("> div")).to_have_css("opacity", "1")
    [sent] = asked
    assert sent["trigger"] == {"kind": "sun", "place": {"latitude": 52.5}}
    assert sent["target"] == {"kind": "mqtt", "topic": "sun/up", "tags": ["a", "b"], "retain": True}
    assert page.evaluate(AXE, axe) == []


def test_an_edit_shows_what_would_change_before_it_is_saved(server: WebServed, page: Page, name: str) -> None:
    schedule = server.schedule(name=name, description="Before")
    page.goto(f"/schedules?q={name}")
    choose(page, page.get_by_role("button", name=f"Actions for {name}"), "Edit")
    form = sheet(page, f"Edit {name}")
    expect(form.get_by_role("button", name="Review changes")).to_be_disabled()
    form.get_by_label("Description").fill("After")
    expect(form).to_contain_text("1 change")
    form.get_by_role("button", name="Review changes").click()
    expect(form).to_contain_text("Before")
    expect(form).to_contain_text("After")
    assert server.get(f"schedules/{schedule['schedule_id']}")["description"] == "Before"
    form.get_by_label("Reason").fill("it reads better")
    form.get_by_role("button", name="Save").click()
    expect(note(page, f"Saved {name}")).to_be_visible()
    found = server.get(f"schedules/{schedule['schedule_id']}")
    assert (found["description"], found["aggregate_version"]) == ("After", 2)
    latest = server.get(f"schedules/{schedule['schedule_id']}/versions")["items"][0]
    assert latest["reason"] == "it reads better"


def test_of_two_who_edit_at_once_the_second_sees_both_versions_and_chooses(
    server: WebServed, open_page: OpenPage, name: str
) -> None:
    schedule = server.schedule(name=name, description="At first", timeout_seconds=60)
    path = f"schedules/{schedule['schedule_id']}"
    first, second = open_page("editor"), open_page("admin")
    theirs, mine = edit(first, schedule), edit(second, schedule)
    theirs.get_by_label("Description").fill("Of the first")
    mine.get_by_label("Description").fill("Of the second")
    theirs.get_by_role("button", name="Review changes").click()
    theirs.get_by_role("button", name="Save").click()
    expect(note(first, f"Saved {name}")).to_be_visible()

    mine.get_by_role("button", name="Review changes").click()
    mine.get_by_role("button", name="Save").click()
    expect(mine.get_by_role("alert")).to_contain_text("while you were editing it")
    expect(mine.get_by_role("listitem").filter(has_text="Theirs:").first).to_contain_text("Of the first")
    expect(mine.get_by_role("listitem").filter(has_text="Yours:").first).to_contain_text("Of the second")
    assert server.get(path)["description"] == "Of the first", "nothing is lost before somebody chose"
    mine.get_by_role("button", name="Take mine").click()
    expect(note(second, f"Saved {name}")).to_be_visible()
    assert server.get(path)["description"] == "Of the second"


def test_after_a_conflict_the_form_goes_on_with_both_sets_of_changes(
    server: WebServed, page: Page, name: str
) -> None:
    schedule = server.schedule(name=name, description="At first", timeout_seconds=60)
    path = f"schedules/{schedule['schedule_id']}"
    form = edit(page, schedule)
    form.get_by_label("Description").fill("Mine")
    server.by(OPERATOR_KEY).patch(f"{V1}/{path}", json={"timeout_seconds": 120})
    form.get_by_role("button", name="Review changes").click()
    form.get_by_role("button", name="Save").click()
    form.get_by_role("button", name="Edit", exact=True).click()
    expect(form.get_by_label("Description")).to_have_value("Mine")
    form.get_by_role("button", name="Review changes").click()
    form.get_by_role("button", name="Save").click()
    expect(note(page, f"Saved {name}")).to_be_visible()
    found = server.get(path)
    assert (found["description"], found["timeout_seconds"]) == ("Mine", 120)


def test_what_was_typed_is_not_lost_without_a_question(server: WebServed, page: Page, name: str) -> None:
    form = new_form(page)
    form.get_by_role("textbox", name="Name", exact=True).fill(name)
    page.keyboard.press("Escape")
    asked = page.get_by_role("dialog", name="Leave without saving?")
    asked.get_by_role("button", name="Cancel").click()
    expect(form.get_by_role("textbox", name="Name", exact=True)).to_have_value(name)
    page.keyboard.press("Escape")
    asked.get_by_role("button", name="Leave").click()
    title(page, "Schedules")
    expect(form).to_be_hidden()


def test_a_schedule_is_made_by_keyboard_alone(server: WebServed, page: Page, name: str) -> None:
    page.goto("/schedules")
    button = page.get_by_role("button", name="New schedule").first
    button.focus()
    page.keyboard.press("Enter")
    form = sheet(page, "New schedule")
    expect(form).to_be_focused()

    def tab_to(wanted: Locator) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            if wanted.count() == 1 and wanted.evaluate("element => element === document.activeElement"):
                return
        raise AssertionError(f"{wanted} is not reached by Tab")

    tab_to(form.get_by_role("textbox", name="Name", exact=True))
    page.keyboard.type(name)
    task = form.get_by_role("combobox", name="Task function")
    tab_to(task)
    page.keyboard.type("fail")
    expect(form.get_by_role("option", name=re.compile("fail"))).to_be_visible()
    page.keyboard.press("Enter")
    expect(task).to_have_value("fail")
    tab_to(form.get_by_role("button", name="Create"))
    page.keyboard.press("Enter")
    expect(note(page, f"Created {name}")).to_be_visible()
    assert server.get("schedules", name=name)["items"][0]["target"]["name"] == "fail"


def test_a_copy_begins_with_everything_but_the_name(server: WebServed, page: Page, name: str) -> None:
    server.schedule(name=name, timeout_seconds=77, labels={"team": "pay"})
    page.goto(f"/schedules?q={name}")
    choose(page, page.get_by_role("button", name=f"Actions for {name}"), "Duplicate…")
    form = sheet(page, "New schedule")
    expect(form.get_by_role("textbox", name="Name", exact=True)).to_have_value(f"{name}-copy")
    form.get_by_role("button", name="Create").click()
    expect(note(page, f"Created {name}-copy")).to_be_visible()
    [found] = server.get("schedules", name=f"{name}-copy")["items"]
    assert (found["timeout_seconds"], found["labels"]) == (77, {"team": "pay"})
