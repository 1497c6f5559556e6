"""Ten thousand schedules: the list is there as soon as with ten, and read on page by page."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from tests.web.pages import dialog, table, title
from tests.web.served import WebServed

MANY = 10_000
FIRST_ROWS_WITHIN_MS = 8000
"""Generous: it takes a tenth of it on a machine that does nothing else."""


@pytest.fixture(scope="module", autouse=True)
def many(server: WebServed) -> None:
    """Copies of one schedule, made behind the API's back."""
    start = (datetime.now(UTC) + timedelta(days=300)).isoformat()
    server.schedule(name="one 00000", trigger={"kind": "interval", "hours": 5}, start_ts=start)

    async def copy(connection: AsyncConnection) -> None:
        columns = (await connection.execute(text("SELECT * FROM schedule_t LIMIT 0"))).keys()
        own = {"schedule_id": "gen_random_uuid()", "schedule_name": "'one ' || lpad(n::text, 5, '0')"}
        values = ", ".join(own.get(name, f's."{name}"') for name in columns)
        names = ", ".join(f'"{name}"' for name in columns)
        await connection.execute(
            text(
                f"INSERT INTO schedule_t ({names}) SELECT {values} "
                f"FROM schedule_t AS s, generate_series(1, {MANY - 1}) AS n"
            )
        )
        await connection.execute(
            text(
                "INSERT INTO schedule_text_t SELECT schedule_id, host_id, schedule_name, schedule_name "
                "FROM schedule_t ON CONFLICT DO NOTHING"
            )
        )
        await connection.execute(text("ANALYZE schedule_t"))

    server.write(copy)


def test_the_first_rows_are_there_soon_and_the_rest_comes_page_by_page(page: Page) -> None:
    rows = table(page, "Schedules").locator("tbody tr[data-row]")
    page.goto("/schedules")
    expect(rows.first).to_contain_text("one 00000", timeout=FIRST_ROWS_WITHIN_MS)
    first = rows.count()
    assert 0 < first <= 100, "a page, and not all of them"
    page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(2 * first)
    expect(rows.nth(first)).to_contain_text(f"one {first:05}")
    names = rows.evaluate_all("rows => rows.map((row) => row.querySelector('a').textContent)")
    assert names == sorted(set(names))


def test_one_of_them_is_found_and_all_of_them_are_counted(page: Page) -> None:
    page.goto("/schedules")
    title(page, "Schedules")
    rows = table(page, "Schedules").locator("tbody tr[data-row]")
    page.get_by_role("searchbox", name="Name or description").fill("one 07654")
    expect(rows).to_have_count(1)
    page.get_by_role("searchbox", name="Name or description").fill("one 012")
    expect(rows.first).to_contain_text("one 01200")
    page.get_by_role("checkbox", name="Choose one 01200").click()
    chosen = page.get_by_role("region", name="Chosen schedules")
    chosen.get_by_role("button", name="Choose all that match").click()
    chosen.get_by_role("button", name="Pause").click()
    expect(dialog(page, "Pause: 100 schedules")).to_be_visible()


def test_the_other_screens_stay_quick(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("link", name="Paused")).to_contain_text(
        "of 10 k schedules", timeout=FIRST_ROWS_WITHIN_MS
    )
    page.keyboard.press("Control+k")
    page.keyboard.type("09999")
    expect(page.get_by_role("option", selected=True)).to_contain_text(
        "one 09999", timeout=FIRST_ROWS_WITHIN_MS
    )
