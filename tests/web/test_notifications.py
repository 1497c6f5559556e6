"""Notifications: rules that tell a real receiver, the messages that became of them, who may change them."""

import base64
import hmac
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.hosts import unique
from tests.api.served import OPERATOR_KEY, V1
from tests.receiver import SECRET, Received, Receiver, receiving
from tests.waiting import until
from tests.web.conftest import OpenPage
from tests.web.pages import card, choose, dialog, live, note, row, sheet, table, title
from tests.web.served import HOSTILE, WebServed, web_served

RULES = "Notification rules"
WITHIN_MS = 60_000
"""For what the server does by itself, on a machine that is busy."""


@pytest.fixture(scope="module")
def server(module_url: str, built_ui: None) -> Iterator[WebServed]:
    """One whose workers may call this machine."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FOLIOT_HTTP_ALLOW", "127.0.0.0/8")
        with web_served(module_url) as served:
            served.post("secrets", {"name": "hook_key", "value": SECRET})
            yield served


@pytest.fixture(scope="module")
def receiver(server: WebServed) -> Iterator[Receiver]:
    stack = AsyncExitStack()
    yield server.run(stack.enter_async_context(receiving()))
    server.run(stack.aclose())


def rule(server: WebServed, url: str, **fields: Any) -> dict[str, Any]:
    """One that tells a webhook when something fails."""
    document = {
        "name": unique("rule"),
        "on": [{"kind": "failure"}],
        "to": {"kind": "webhook", "url": url, "secret": "${secret:hook_key}"},
        **fields,
    }
    found: dict[str, Any] = server.post("notifications/rules", document)
    return found


def failing(server: WebServed, **fields: Any) -> dict[str, Any]:
    return server.schedule(
        target={"kind": "function", "name": "fail", "args": {"text": HOSTILE}},
        retry={"max_attempts": 1},
        **fields,
    )


def messages_of(server: WebServed, rule_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get("notifications", rule_id=rule_id)["items"]
    return found


def signature(received: Received, key: str) -> str:
    """What a receiver expects that was given this key."""
    signed = f"{received.message_id}.{received.headers['webhook-timestamp']}.".encode() + received.body
    made = hmac.digest(base64.b64decode(key.removeprefix("whsec_")), signed, "sha256")
    return f"v1,{base64.b64encode(made).decode()}"


def patch(server: WebServed, address: str, changes: dict[str, Any]) -> None:
    """What somebody else changes meanwhile."""
    with server.client(OPERATOR_KEY) as client:
        assert client.patch(f"{V1}/{address}", json=changes).status_code == 200


def noted(page: Page, text: str) -> None:
    """A note, and away with it: it lies over the buttons of a sheet."""
    expect(note(page, text)).to_be_visible()
    page.get_by_role("button", name="Dismiss").evaluate_all("all => all.forEach(each => each.click())")


def actions(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=f"Actions for {name}")


def test_a_rule_is_made_and_its_test_is_followed_to_a_receiver(
    server: WebServed, receiver: Receiver, page: Page
) -> None:
    name, path, schedule = unique("on-call"), f"/{unique()}/path", server.schedule()
    secret = unique("key").replace("-", "_")
    page.goto("/")
    live(page)
    page.keyboard.press("g")
    page.keyboard.press("n")
    title(page, "Notifications")
    page.get_by_role("button", name="New rule").click()
    form = sheet(page, "New notification rule")
    form.get_by_role("button", name="Make the rule").click()
    expect(form.get_by_label("Name", exact=True)).to_be_focused()
    expect(form.get_by_label("URL")).to_have_accessible_description(re.compile("Say where to"))

    form.get_by_label("Name", exact=True).fill(name)
    form.get_by_role("combobox", name="Schedules").fill(schedule["name"])
    form.get_by_role("option", name=schedule["name"]).click()
    form.get_by_role("button", name="Add a label").click()
    form.get_by_label("Name of label 1").fill("team")
    form.get_by_label("Value of label 1").fill("pay")
    form.get_by_label("Fails several times in a row").check()
    form.get_by_label("How many failures in a row").fill("200")
    form.get_by_label("Has no success for too long").check()
    form.get_by_label("How long without success", exact=True).fill("2")
    form.get_by_label("Signing secret").fill("hook_key")
    form.get_by_label("URL").fill("http://10.0.0.1/hook")
    make = form.get_by_role("button", name="Make the rule")
    make.click()
    expect(form.get_by_label("How many failures in a row")).to_be_focused()
    expect(form.get_by_text("less than or equal to 100")).to_be_visible()
    form.get_by_label("How many failures in a row").fill("3")
    make.click()
    expect(form.get_by_label("URL")).to_be_focused()
    expect(form.get_by_label("URL")).to_have_accessible_description(re.compile("FOLIOT_HTTP_ALLOW"))
    form.get_by_label("URL").fill(receiver.url(path))
    form.get_by_role("button", name="Make a key…").click()
    keys = dialog(page, "A new signing key")
    key = keys.get_by_role("region", name="the key").inner_text()
    keys.get_by_label("Store it as the secret").fill("hook_key")
    expect(keys.get_by_role("button", name="Store it")).to_be_disabled()
    keys.get_by_label("Store it as the secret").fill(secret)
    keys.get_by_role("button", name="Store it").click()
    noted(page, f"Stored {secret}")
    expect(form.get_by_label("Signing secret")).to_have_value(secret)
    make.click()
    noted(page, f"Made {name}")

    shown = row(page, RULES, name)
    for words in (
        schedule["name"],
        "team: pay",
        "fails; fails 3 times in a row; no success for 2 days; recovers",
        "Webhook",
        f"127.0.0.1:{receiver.port}",
    ):
        expect(shown).to_contain_text(words)
    expect(shown).not_to_contain_text(path)

    choose(page, actions(page, name), "Send a test")
    asked = dialog(page, f"A test of {name}")
    expect(asked.get_by_role("status")).to_have_text("Delivered, after 1 try.", timeout=WITHIN_MS)
    [received] = receiver.at(path)
    assert received.headers["webhook-signature"] == signature(received, key)
    assert received.document["type"] == "test"
    asked.get_by_role("button", name="Show the message").click()
    opened = sheet(page, "Test")
    expect(opened).to_contain_text(received.message_id)
    opened.get_by_role("button", name="Close").click()
    expect(row(page, "Messages", name)).to_contain_text("delivered")


def test_a_failure_is_told_and_one_that_was_given_up_is_sent_again(
    server: WebServed, receiver: Receiver, open_page: OpenPage
) -> None:
    schedule, path, name = failing(server), f"/{unique()}", f"{unique()} {HOSTILE}"
    made = rule(server, receiver.url(path), name=name, match={"schedules": [schedule["schedule_id"]]})
    receiver.answers[path] = [410]
    page = open_page("operator")
    page.goto(f"/notifications/messages?rule_id={made['rule_id']}")
    expect(page.get_by_text("No message matches")).to_be_visible()
    server.trigger(schedule["schedule_id"])
    shown = row(page, "Messages", schedule["name"])
    expect(shown).to_contain_text("given up", timeout=WITHIN_MS)
    expect(shown).to_contain_text("410")
    expect(shown).to_contain_text(name)
    expect(shown.get_by_role("link", name=schedule["name"])).to_have_attribute(
        "href", f"/schedules/{schedule['schedule_id']}"
    )
    shown.get_by_role("link", name="Failed").click()
    opened = sheet(page, "Failed")
    expect(opened.get_by_text(f'"RuntimeError: {HOSTILE}"')).to_be_visible()
    opened.get_by_role("button", name="Send again").click()
    expect(opened.get_by_text("delivered", exact=True)).to_be_visible(timeout=WITHIN_MS)
    expect(opened.get_by_role("button", name="Send again")).to_have_count(0)
    first, second = receiver.at(path)
    assert first.message_id == second.message_id
    assert second.is_signed
    opened.get_by_role("button", name="Close").click()
    expect(shown).to_contain_text("delivered")
    page.get_by_role("button", name="Status").click()
    page.get_by_role("menuitemcheckbox", name="given up").click()
    page.keyboard.press("Escape")
    expect(page.get_by_text("No message matches")).to_be_visible()

    page.goto(f"/schedules/{schedule['schedule_id']}")
    about = card(page, "Notifications")
    expect(about.get_by_role("link", name=name)).to_be_visible()
    expect(about).to_contain_text("fails")
    assert [each["rule_id"] for each in messages_of(server, made["rule_id"])] == [made["rule_id"]]
    page.goto(f"/schedules/{server.schedule()['schedule_id']}")
    expect(card(page, "Notifications")).to_contain_text("No rule is about it")


def test_a_rule_is_muted_disabled_changed_and_deleted(
    server: WebServed, receiver: Receiver, open_page: OpenPage
) -> None:
    made = rule(server, receiver.url("/changed"))
    name, address = made["name"], f"notifications/rules/{made['rule_id']}"
    page = open_page("editor")
    page.goto("/notifications")
    shown = row(page, RULES, name)
    choose(page, actions(page, name), "Mute…")
    asked = dialog(page, f"Mute {name}")
    asked.get_by_role("radio", name="8 h").check()
    asked.get_by_role("button", name="Mute").click()
    expect(shown).to_contain_text("muted to")
    assert server.get(address)["muted_until_ts"] is not None
    noted(page, f"Muted {name}")
    choose(page, actions(page, name), "Unmute")
    noted(page, f"{name} is heard again")
    expect(shown).not_to_contain_text("muted to")
    shown.get_by_role("switch").click()
    noted(page, f"Disabled {name}")
    assert server.get(address)["enabled"] is False

    shown.get_by_role("link", name=name).click()
    form = sheet(page, name)
    form.get_by_label("Description").fill("mine")
    patch(server, address, {"description": "theirs"})
    form.get_by_role("button", name="Save").click()
    expect(form).to_contain_text("has changed it meanwhile")
    form.get_by_role("button", name="Save").click()
    noted(page, f"Saved {name}")
    shown.get_by_role("link", name=name).click()
    form.get_by_label("Description").fill("mine again")
    # Of what the form does not have nothing is lost, and nothing is asked.
    patch(server, address, {"enabled": True})
    form.get_by_role("button", name="Save").click()
    expect(shown).to_contain_text("mine again")
    assert server.get(address)["enabled"] is True

    choose(page, actions(page, name), "Delete…")
    dialog(page, f"Delete {name}?").get_by_role("button", name="Delete").click()
    noted(page, f"Deleted {name}")
    expect(row(page, RULES, name)).to_have_count(0)


def test_a_viewer_sees_rules_and_messages_and_may_change_nothing(
    server: WebServed, receiver: Receiver, open_page: OpenPage
) -> None:
    path = f"/{unique()}"
    made = rule(server, receiver.url(path))
    receiver.answers[path] = [410]
    server.post(f"notifications/rules/{made['rule_id']}/test", status=202)
    until(lambda: [each["status"] for each in messages_of(server, made["rule_id"])] == ["dead"])
    page = open_page("viewer")
    page.goto("/notifications")
    shown, why = row(page, RULES, made["name"]), "Takes the role editor; yours is viewer."
    expect(shown).to_be_visible()
    for control in (page.get_by_role("button", name="New rule"), shown.get_by_role("switch")):
        expect(control).to_be_disabled()
        expect(control).to_have_accessible_description(why)
    actions(page, made["name"]).click()
    for item in ("Send a test", "Mute…", "Delete…"):
        expect(page.get_by_role("menuitem", name=item)).to_be_disabled()
    page.get_by_role("menuitem", name="Its messages").click()
    again = row(page, "Messages", made["name"]).get_by_role("button", name="Send again")
    expect(again).to_be_disabled()
    expect(again).to_have_accessible_description("Takes the role operator; yours is viewer.")
    expect(table(page, "Messages").locator("tbody tr")).to_have_count(1)
    page.goto(f"/notifications/rules?rule={made['rule_id']}")
    form = sheet(page, made["name"])
    expect(form.get_by_label("URL")).to_be_disabled()
    expect(form.get_by_role("button", name="Save")).to_have_accessible_description(why)
