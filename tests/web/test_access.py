"""Access: keys, secrets, calendars, the audit, hosts; and what each role sees of them."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.api.hosts import unique
from tests.api.served import OPERATOR_KEY
from tests.web.conftest import OpenPage
from tests.web.pages import choose, dialog, note, row, sheet, table, title
from tests.web.served import WebServed


def test_a_key_is_shown_once_works_and_is_revoked(server: WebServed, page: Page) -> None:
    name = unique("key")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/access/keys")
    page.get_by_role("button", name="New key").click()
    asked = dialog(page, "New key")
    asked.get_by_label("Name").fill(name)
    asked.get_by_role("radio", name=re.compile("^operator")).check()
    asked.get_by_role("button", name="Make the key").click()
    shown = dialog(page, f"Key {name}")
    expect(shown).to_contain_text("can't be shown again")
    shown.get_by_role("button", name="Copy the key").click()
    expect(shown.get_by_role("button", name="Copied")).to_be_visible()
    key = page.evaluate("navigator.clipboard.readText()")
    with server.client(key) as client:
        assert client.get("/api/v1/me").json()["role"] == "operator"
    shown.get_by_role("button", name="I have kept it").click()
    expect(row(page, "Keys", name)).to_contain_text("operator")
    page.reload()
    expect(row(page, "Keys", name)).to_be_visible()
    assert key not in page.content()
    page.get_by_role("button", name=f"Revoke {name}").click()
    dialog(page, f"Revoke {name}?").get_by_role("button", name="Revoke").click()
    expect(row(page, "Keys", name)).to_contain_text("revoked")
    with server.client(key) as client:
        assert client.get("/api/v1/me").status_code == 401


def test_a_secret_is_written_and_never_shown(server: WebServed, page: Page) -> None:
    name, value = unique("secret"), "a-value-that-nobody-may-see"
    page.goto("/access/secrets")
    page.get_by_role("button", name="Set a secret").click()
    asked = dialog(page, "Set a secret")
    asked.get_by_label("Name").fill(name)
    asked.get_by_label("Value", exact=True).fill(value)
    with page.expect_response(lambda answer: answer.request.method == "POST") as written:
        asked.get_by_role("button", name="Set", exact=True).click()
    assert value not in written.value.text()
    expect(note(page, f"Set {name}")).to_be_visible()
    expect(row(page, "Secrets", name)).to_contain_text(f"${{secret:{name}}}")
    with page.expect_response(re.compile(r"/api/v1/secrets(\?|$)")) as listed:
        page.reload()
    assert name in listed.value.text()
    assert value not in listed.value.text()
    expect(row(page, "Secrets", name)).to_contain_text("never shown")
    assert value not in page.content()
    choose(page, page.get_by_role("button", name=f"Actions for {name}"), "Delete…")
    asked = dialog(page, f"Delete {name}?")
    asked.get_by_role("button", name="Delete").click()
    expect(asked).to_be_hidden()
    expect(row(page, "Secrets", name)).to_have_count(0)
    assert name not in [each["name"] for each in server.get("secrets")["items"]]


def test_a_calendar_is_made_used_and_not_deleted_while_it_is_used(server: WebServed, page: Page) -> None:
    name, schedule_name = unique("calendar"), unique("web")
    page.goto("/access/calendars")
    page.get_by_role("button", name="New calendar").click()
    form = sheet(page, "New calendar")
    form.get_by_label("Name").fill(name)
    form.get_by_role("checkbox", name="Sun").check(force=True)
    form.get_by_role("button", name="Add a country").click()
    form.get_by_label("Country", exact=True).fill("de")
    expect(form).to_contain_text("Germany")
    form.get_by_role("button", name="Make the calendar").click()
    expect(row(page, "Calendars", name)).to_contain_text("Germany")
    found = server.get(f"calendars/{name}")
    assert (found["weekdays"], found["countries"][0]["country"]) == ([7], "DE")
    server.schedule(name=schedule_name, calendars=[name])
    choose(page, page.get_by_role("button", name=f"Actions for {name}"), "Delete…")
    asked = dialog(page, f"Delete {name}?")
    expect(asked.get_by_role("link", name=schedule_name)).to_be_visible()
    expect(asked.get_by_role("button", name="Delete")).to_be_disabled()


def test_a_calendar_is_imported_from_a_file(server: WebServed, page: Page) -> None:
    name = unique("calendar")
    lines = (
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//test//EN",
        "BEGIN:VEVENT",
        "UID:1",
        "DTSTAMP:20260101T000000Z",
        "DTSTART;VALUE=DATE:20300105",
        "SUMMARY:A day off",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    )
    page.goto("/access/calendars?new=import")
    page.locator("input[type=file]").set_input_files(
        {"name": "days.ics", "mimeType": "text/calendar", "buffer": "\r\n".join(lines).encode()}
    )
    asked = page.get_by_role("dialog")
    asked.get_by_label("Name").fill(name)
    asked.get_by_role("button", name=re.compile("^Import")).click()
    expect(sheet(page, name)).to_contain_text("1 day chosen")
    assert server.get(f"calendars/{name}")["days"] == ["2030-01-05"]


def test_the_audit_tells_who_did_what_with_before_and_after(server: WebServed, page: Page) -> None:
    name = unique("web")
    schedule = server.schedule(name=name, description="Before")
    server.post(f"schedules/{schedule['schedule_id']}/pause", {"reason": "a migration"}, status=200)
    page.goto(f"/access/audit?resource_id={schedule['schedule_id']}")
    rows = table(page, "Audit").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("paused")
    expect(rows.first).to_contain_text("a migration")
    expect(rows.first).to_contain_text("operator")
    rows.first.click(position={"x": 4, "y": 4})
    panel = page.get_by_role("dialog")
    for text in ("a migration", "What changed", "Request", "127.0.0.1"):
        expect(panel).to_contain_text(text)
    record = server.get("audit", resource_id=schedule["schedule_id"])["items"][0]
    expect(panel).to_contain_text(record["request_id"])


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("keys", "Keys: needs admin"),
        ("secrets", "Secrets: needs admin"),
        ("audit", "The audit: needs admin"),
        ("hosts", "Hosts: for the operator"),
    ],
)
def test_what_a_role_may_not_see_says_so_calmly(open_page: OpenPage, address: str, text: str) -> None:
    page = open_page("editor")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"/access/{address}")
    expect(page.get_by_text(text)).to_be_visible()
    assert not [url for url in asked if f"/api/v1/{address}" in url], "what is refused is not asked for"


def test_everybody_is_told_who_they_are_and_what_they_may(open_page: OpenPage) -> None:
    page = open_page("viewer")
    page.goto("/access")
    title(page, "Access")
    expect(page.get_by_role("region", name="Signed in as")).to_contain_text("viewer")
    may = page.get_by_role("region", name="What you may do").get_by_role("listitem")
    expect(may.filter(has_text="May:").first).to_be_visible()
    expect(may.filter(has_text="May not:").first).to_be_visible()
    page.goto("/access/calendars")
    new = page.get_by_role("button", name="New calendar")
    expect(new).to_be_disabled()
    expect(new).to_have_accessible_description("Takes the role editor; yours is viewer.")


def test_the_operator_makes_a_host_and_its_first_key(server: WebServed, open_page: OpenPage) -> None:
    name = unique("host")
    page = open_page("operator's key")
    page.goto("/access/hosts")
    page.get_by_role("button", name="New host").click()
    asked = dialog(page, "New host")
    asked.get_by_label("Name").fill(name)
    asked.get_by_role("button", name="Make the host").click()
    page.get_by_role("button", name="Make a key for it").click()
    asked = dialog(page, "New key")
    asked.get_by_label("Name").fill("first")
    asked.get_by_role("radio", name=re.compile("^admin")).check()
    asked.get_by_role("button", name="Make the key").click()
    key = dialog(page, "Key first").locator("code").inner_text()
    with server.client(key) as client:
        me = client.get("/api/v1/me").json()
    found = {
        each["name"]: each["host_id"] for each in server.by(OPERATOR_KEY).get("/api/v1/hosts").json()["items"]
    }
    assert me["host_id"] == found[name]
