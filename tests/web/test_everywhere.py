"""What holds on every screen: it can be used without seeing colours, on a phone, in one's own zone."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.waiting import until
from tests.web.conftest import NARROW, WIDE, OpenPage
from tests.web.pages import card, no_sideways_scroll, row, settled, title
from tests.web.served import WebServed

SCREENS = {
    "overview": "/",
    "schedules": "/schedules",
    "schedule over the list": "/schedules?open={failing}",
    "schedule": "/schedules/{failing}",
    "fires of a schedule": "/schedules/{failing}?tab=fires",
    "executions of a schedule": "/schedules/{failing}?tab=executions",
    "versions of a schedule": "/schedules/{failing}?tab=versions&version=2",
    "code of a schedule": "/schedules/{failing}?tab=code",
    "run": "/schedules/{failing}?do=run",
    "backfill": "/schedules/{failing}?do=backfill",
    "new schedule": "/schedules/new",
    "edit": "/schedules/{failing}?do=edit",
    "executions": "/executions",
    "execution over the list": "/executions?open={failed}",
    "execution": "/executions/{failed}",
    "execution with a log": "/executions/{told}",
    "timeline": "/timeline",
    "timeline as a table": "/timeline?view=table",
    "notification rules": "/notifications",
    "new notification rule": "/notifications?new=rule",
    "notification rule": "/notifications/rules?rule={rule}",
    "messages": "/notifications/messages",
    "message": "/notifications/messages?message={message}",
    "cluster": "/cluster",
    "workers": "/cluster/workers",
    "queues": "/cluster/queues",
    "task functions": "/cluster/tasks",
    "task function": "/cluster/tasks/greet",
    "leaders": "/cluster/leaders",
    "keys": "/access/keys",
    "new key": "/access/keys?new=key",
    "secrets": "/access/secrets",
    "calendars": "/access/calendars",
    "new calendar": "/access/calendars?new=calendar",
    "audit": "/access/audit",
    "hosts": "/access/hosts",
    "you": "/access/me",
    "about": "/about",
    "nothing": "/nowhere",
}

AXE = """async (source) => {
  if (!window.axe) { (0, eval)(source); }
  const found = await window.axe.run(document, {
    resultTypes: ["violations"],
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  });
  return found.violations
    .filter((each) => each.impact === "serious" || each.impact === "critical")
    .map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.target.join(" ")).join(" | ")}`);
}"""


@pytest.fixture(scope="module")
def scene(server: WebServed) -> dict[str, str]:
    """Something of everything, with names as long as they may be."""
    long = "a-name-that-is-as-long-as-a-name-of-a-schedule-may-be-" + "x" * 70
    failing, [failed] = server.executed(
        name=long,
        description="word " * 80,
        labels={"team": "pay", "a-label": "y" * 120},
        target={"kind": "function", "name": "fail", "args": {"text": "z" * 400}},
        retry={"max_attempts": 1},
    )
    server.post(f"schedules/{failing['schedule_id']}/pause", {"reason": "because " * 20}, status=200)
    text = "a long line without an end " * 20
    _, [told] = server.executed(
        target={"kind": "function", "name": "tell", "args": {"text": text, "lines": 5}}
    )
    for unit in ("seconds", "minutes", "hours"):
        schedule = server.schedule(trigger={"kind": "interval", unit: 2}, queue=f"queue-{unit}")
        if unit == "seconds":
            often = schedule["schedule_id"]
    until(lambda: bool(server.get("executions", schedule_id=often)["items"]))
    server.post("secrets", {"name": "a_secret", "value": "a value"})
    server.post("calendars", {"name": "days off", "days": ["2030-01-01"], "weekdays": [6, 7]})
    rule = server.post(
        "notifications/rules",
        {
            "name": "r" * 126,
            "description": "word " * 80,
            "match": {"schedules": [failing["schedule_id"]], "labels": {"a-label": "y" * 120}},
            "on": [
                {"kind": "failure"},
                {"kind": "did_not_run", "within_seconds": 3600},
                {"kind": "recovery"},
            ],
            # Without its secret no message leaves.
            "to": {"kind": "webhook", "url": "https://hooks.example/x", "secret": "${secret:not_there}"},
            "muted_until_ts": "2031-01-01T00:00:00Z",
        },
    )
    message = server.post(f"notifications/rules/{rule['rule_id']}/test", status=202)
    return {
        "failing": failing["schedule_id"],
        "failed": failed["execution_id"],
        "told": told["execution_id"],
        "rule": rule["rule_id"],
        "message": message["notification_id"],
    }


def go(page: Page, address: str) -> None:
    """As a link of the page does, without loading it anew: that would take three times as long."""
    page.evaluate(
        "address => { history.pushState(null, '', address); dispatchEvent(new PopStateEvent('popstate')); }",
        address,
    )


@pytest.mark.parametrize(("theme", "width"), [("light", WIDE), ("dark", NARROW)])
def test_no_screen_has_a_serious_fault_of_accessibility_or_scrolls_sideways(
    open_page: OpenPage, scene: dict[str, str], axe: str, theme: str, width: int
) -> None:
    page = open_page("operator's key", width=width, theme=theme)
    page.goto("/")
    settled(page)
    page.evaluate("source => { (0, eval)(source); }", axe)
    faults: dict[str, Any] = {}
    for name, address in SCREENS.items():
        go(page, address.format(**scene))
        settled(page)
        # The page has axe by now: sending its half a megabyte for each screen takes CPU time.
        found = page.evaluate(AXE, "")
        found += no_sideways_scroll(page)
        if found:
            faults[name] = found
    assert faults == {}, json.dumps(faults, indent=2)


def test_the_sign_in_page_has_no_serious_fault_of_accessibility(open_page: OpenPage, axe: str) -> None:
    for theme in ("light", "dark"):
        page = open_page(None, width=NARROW, theme=theme)
        page.goto("/?link=spent")
        title(page, "Sign in to Foliot")
        assert page.evaluate(AXE, axe) == []
        assert no_sideways_scroll(page) == []


def test_axe_is_really_asked(open_page: OpenPage, axe: str) -> None:
    page = open_page(None)
    page.goto("/")
    title(page, "Sign in to Foliot")
    page.evaluate("document.querySelector('input').removeAttribute('id')")
    assert page.evaluate(AXE, axe) != []


def test_times_are_shown_in_the_zone_that_the_reader_chose_and_it_is_remembered(
    server: WebServed, open_page: OpenPage
) -> None:
    at = datetime(2031, 7, 1, 12, 0, tzinfo=UTC)
    schedule = server.schedule(
        name="zoned", trigger={"kind": "cron", "expression": "0 21 1 7 *", "timezone": "Asia/Tokyo"},
        start_ts=(at - timedelta(days=1)).isoformat(),
    )  # fmt: skip
    page = open_page()
    page.goto("/schedules?q=zoned")
    shown = row(page, "Schedules", "zoned").locator("time").last
    for choice, hour in (("My zone", "08:00"), ("UTC", "12:00"), ("Schedule's zone", "21:00")):
        page.get_by_role("button", name="Time zone:").click()
        page.get_by_role("menuitemradio", name=choice).click()
        expect(shown).to_have_text(f"2031-07-01 {hour}")
    expect(shown).to_have_attribute("title", "Tue 2031-07-01 21:00:00 GMT+9, Asia/Tokyo")
    page.reload()
    expect(shown).to_have_text("2031-07-01 21:00")
    page.goto(f"/schedules/{schedule['schedule_id']}")
    expect(card(page, "Next times").get_by_role("row").nth(1)).to_contain_text("2031-07-01 21:00")


def test_everything_comes_from_the_server_itself(open_page: OpenPage, server: WebServed) -> None:
    page = open_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for address in ("/", "/schedules", "/timeline"):
        page.goto(address)
        settled(page)
    assert asked
    assert [url for url in asked if not url.startswith((server.url, "data:"))] == []
