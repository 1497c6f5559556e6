"""Helpers to find elements of the UI's pages."""

import re
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Dialog, Locator, Page, Response, expect

_REFUSED = "Failed to load resource"
"""Chromium's console message for a status of 400 or above. `Watch` checks responses itself."""


class Watch:
    """Records what must not happen on a page: script errors, violations of the security policy, dialogs."""

    def __init__(self, page: Page) -> None:
        self.troubles: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.troubles.append(f"uncaught: {error}"))
        page.on("dialog", self._dismiss)
        page.on("response", self._look)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and _REFUSED not in message.text:
            self.troubles.append(f"{message.type}: {message.text}")

    def _dismiss(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _look(self, response: Response) -> None:
        path = urlsplit(response.url).path
        is_asked_for = path.removeprefix("/foliot").startswith(("/api/", "/sign-in"))
        if response.status >= 500 or (response.status >= 400 and not is_asked_for):
            self.troubles.append(f"{response.status}: {path}")


def title(page: Page, text: str) -> None:
    """Wait for a screen with this heading."""
    expect(page.get_by_role("heading", level=1, name=text, exact=True)).to_be_visible()


def table(page: Page, name: str) -> Locator:
    return page.get_by_role("table", name=name)


def row(page: Page, table_name: str, text: str) -> Locator:
    """Return the row of a table that contains this text."""
    return table(page, table_name).locator("tbody tr").filter(has_text=text)


def sheet(page: Page, name: str) -> Locator:
    return page.get_by_role("dialog", name=name)


def dialog(page: Page, name: str | re.Pattern[str]) -> Locator:
    return page.get_by_role("dialog", name=name)


def note(page: Page, text: str) -> Locator:
    """Return a short notification at the edge of the page."""
    return page.get_by_role("region", name="Notes").get_by_text(text)


def live(page: Page) -> None:
    """Wait until the page receives live updates."""
    expect(page.get_by_role("banner").get_by_text("Live", exact=True)).to_be_attached()


def choose(page: Page, menu: Locator, item: str) -> None:
    """Open a menu and choose an item."""
    menu.click()
    page.get_by_role("menuitem", name=item).click()


def no_sideways_scroll(page: Page) -> list[str]:
    """Return an error if the page scrolls sideways. Wide content must scroll in its own box."""
    over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [f"scrolls sideways by {over} px"] if over > 0 else []


def settled(page: Page) -> None:
    """Wait until a screen has loaded its data and shows no placeholder."""
    expect(page.get_by_role("heading").first).to_be_visible()
    expect(page.locator("main .animate-waiting, [role=dialog] .animate-waiting")).to_have_count(0)
    page.evaluate("document.fonts.ready.then(() => null)")


def tab(page: Page, name: str) -> Locator:
    return page.get_by_role("tab", name=name, exact=True)


def card(page: Page, name: str) -> Locator:
    """Return the section of a screen or panel with this heading."""
    return page.get_by_role("region", name=name)
