"""Kinds of a package from outside in the UI: their forms come from their JSON schemas."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.plug_in import ADMIN_KEY, PlugInServer, install
from tests.waiting import until
from tests.web.conftest import WITHIN_MS
from tests.web.pages import Watch, sheet
from tests.web.test_schedule_form import pick
from tests.web.test_sign_in import sign_in


@pytest.fixture
def server(tmp_path: Path, built_ui: None) -> Iterator[PlugInServer]:
    with PlugInServer(tmp_path, install(tmp_path / "installed")).running() as server:
        yield server


def test_a_schedule_is_made_and_run(server: PlugInServer, browser: Browser, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.touch()
    with browser.new_context(base_url=server.url, reduced_motion="reduce", locale="en-GB") as context:
        context.set_default_timeout(WITHIN_MS)
        page = context.new_page()
        watch = Watch(page)
        page.goto("/schedules/new")
        sign_in(page, ADMIN_KEY)
        form = sheet(page, "New schedule")
        form.get_by_role("textbox", name="Name", exact=True).fill("from outside")
        pick(form, "Growing pauses")
        form.get_by_label("First pause (required)").fill("0.5")
        pick(form, "Line in a file")
        form.get_by_label("Line (required)").fill("from the page")
        form.get_by_label("File (required)").fill("lines.txt")
        expect(form.get_by_role("region", name="Preview")).to_contain_text("0.5 seconds after the start")
        form.get_by_role("button", name="Create").click()
        file = form.get_by_label("File (required)")
        expect(file).to_have_attribute("aria-invalid", "true")
        file.fill(str(lines))
        form.get_by_role("button", name="Create").click()
        expect(sheet(page, "from outside")).to_contain_text("0.5 seconds after the start")
        until(lambda: "from the page" in lines.read_text())
        page.goto("/schedules?target=append")
        expect(page.get_by_role("row", name="from outside")).to_contain_text("Line in a file")
        made = server.ask("GET", "schedules?name=from%20outside")[1]["items"][0]
        assert made["trigger"] == {"kind": "growing", "seconds": 0.5, "factor": 2}
        assert watch.troubles == []
