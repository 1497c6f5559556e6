"""The UI where FOLIOT_PUBLIC_URL has a path: every page, file and request stays under it."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.api.served import OPERATOR_KEY
from tests.web.conftest import OpenPage
from tests.web.pages import title
from tests.web.served import WebServed, web_served
from tests.web.test_sign_in import sign_in


@pytest.fixture(scope="module")
def server(module_url: str, built_ui: None) -> Iterator[WebServed]:
    with web_served(module_url, public_url="http://jobs.example/foliot") as served:
        yield served


def test_a_reader_signs_in_and_goes_from_page_to_page(server: WebServed, open_page: OpenPage) -> None:
    schedule = server.schedule()
    page = open_page(None)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    page.goto("/foliot/schedules")
    title(page, "Sign in to Foliot")
    sign_in(page, OPERATOR_KEY)
    title(page, "Schedules")
    assert urlsplit(page.url).path == "/foliot/schedules"
    page.get_by_role("link", name="Executions").first.click()
    title(page, "Executions")
    assert urlsplit(page.url).path == "/foliot/executions"
    page.goto(f"/foliot/schedules/{schedule['schedule_id']}")
    title(page, schedule["name"])
    page.reload()
    title(page, schedule["name"])
    page.go_back()
    title(page, "Executions")
    expect(page.get_by_role("link", name="Schedules").first).to_have_attribute("href", "/foliot/schedules")
    assert [path for path in asked if not path.startswith("/foliot/")] == []
    assert "/foliot/api/v1/stream" in asked


def test_a_file_with_the_hash_in_its_name_is_kept_for_ever(server: WebServed, open_page: OpenPage) -> None:
    page = open_page(None)
    with page.expect_response(lambda answer: "/assets/index-" in answer.url) as loaded:
        page.goto("/foliot/")
    assert "immutable" in loaded.value.headers["cache-control"]
    assert urlsplit(loaded.value.url).path.startswith("/foliot/assets/")
