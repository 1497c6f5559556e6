"""The banner: on every page it names what keeps work from being done, as the server reports it."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.api.hosts import unique
from tests.waiting import until
from tests.web.conftest import OpenPage
from tests.web.pages import choose, live, note, row, settled, title
from tests.web.served import WebServed
from tests.web.test_everywhere import AXE


def banner(page: Page) -> Locator:
    return page.get_by_role("region", name="What stops work")


def lines(page: Page) -> Locator:
    return banner(page).get_by_role("listitem")


@pytest.fixture
def drained(server: WebServed) -> Iterator[None]:
    """Of the only worker."""
    instance_id = server.instance.instance_id
    server.post(f"instances/{instance_id}/drain", status=200)
    yield
    server.post(f"instances/{instance_id}/resume", status=200)


def test_nothing_is_said_while_nothing_stops_work(page: Page) -> None:
    page.goto("/")
    title(page, "Overview")
    live(page)
    expect(banner(page)).to_be_attached()
    expect(lines(page)).to_have_count(0)


def test_a_drained_only_worker_is_named_on_every_page(drained: None, page: Page) -> None:
    for path in ("/", "/schedules", "/executions", "/timeline", "/access"):
        page.goto(path)
        expect(lines(page).first).to_contain_text("The only worker is draining: no execution starts.")
    lines(page).first.get_by_role("link", name="Workers").click()
    title(page, "Cluster")


def test_a_banner_can_be_read_by_all_in_light_and_dark(drained: None, open_page: OpenPage, axe: str) -> None:
    for theme, width in (("light", 1280), ("dark", 390)):
        page = open_page(theme=theme, width=width)
        page.goto("/")
        expect(lines(page).first).to_be_visible()
        settled(page)
        assert page.evaluate(AXE, axe) == []


def test_a_task_that_no_worker_knows_is_named(server: WebServed, page: Page) -> None:
    name, task = unique("orphan"), unique("gone.task")
    server.register_task(task)
    made = server.schedule(name=name, target={"kind": "function", "name": task})
    page.goto("/schedules")
    expect(lines(page)).to_have_text(
        re.compile(f"^No worker knows the task {task}: the schedule {name} can't run.")
    )
    server.post(f"schedules/{made['schedule_id']}/pause", status=200)
    expect(lines(page)).to_have_count(0)


def test_a_paused_queue_with_waiting_work_is_named_until_it_is_resumed(
    server: WebServed, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Workers see at once, and not every other second, which queues are paused.
    monkeypatch.setattr("foliot.worker.worker.QUEUES_EVERY_S", 0.0)
    queue = unique("queue")
    made = server.schedule(queue=queue)
    server.post(f"queues/{queue}/pause", {"reason": "repairs"}, status=200)
    waiting = server.trigger(made["schedule_id"])
    page.goto("/executions")
    expect(lines(page)).to_contain_text([f"The queue {queue} is paused: 1 execution waits in it."])
    server.post(f"queues/{queue}/resume", status=200)
    server.ended(waiting)
    expect(lines(page)).to_have_count(0)


def test_late_is_what_the_server_says_and_not_what_an_old_row_suggests(server: WebServed, page: Page) -> None:
    name = unique("often")
    server.schedule(name=name, trigger={"kind": "interval", "seconds": 2})
    page.goto(f"/schedules?q={name}")
    shown = row(page, "Schedules", name)
    expect(shown).to_contain_text("active")
    # From now on the page hears nothing new, and time goes on.
    page.route("**/api/v1/**", lambda route: route.abort())
    page.clock.install()
    page.clock.fast_forward(3_600_000)
    expect(shown.locator("time").first).to_have_text("due")
    expect(page.get_by_role("main")).not_to_contain_text("late")


def test_run_now_without_a_connection_says_that_nothing_was_started(server: WebServed, page: Page) -> None:
    name = unique("offline")
    made = server.schedule(name=name)
    page.goto(f"/schedules?q={name}")
    shown = row(page, "Schedules", name)
    expect(shown).to_be_visible()
    page.context.set_offline(True)
    choose(page, shown.get_by_role("button", name=f"Actions for {name}"), "Run now")
    expect(note(page, f"{name} was not started")).to_be_visible()
    expect(note(page, "Nothing was started.")).to_be_visible()
    expect(banner(page)).to_contain_text("The server can't be reached since")
    page.context.set_offline(False)
    expect(banner(page).get_by_text("can't be reached")).to_have_count(0)
    live(page)
    assert server.get("executions", schedule_id=made["schedule_id"])["items"] == []


def test_run_now_whose_answer_is_lost_says_that_it_may_have_been_started(
    server: WebServed, page: Page
) -> None:
    name = unique("in doubt")
    made = server.schedule(name=name)
    page.goto(f"/schedules?q={name}")
    shown = row(page, "Schedules", name)
    expect(shown).to_be_visible()

    def lose_the_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/trigger", lose_the_answer)
    choose(page, shown.get_by_role("button", name=f"Actions for {name}"), "Run now")
    expect(note(page, f"{name} may have been started")).to_be_visible()
    until(lambda: len(server.get("executions", schedule_id=made["schedule_id"])["items"]) == 1)
