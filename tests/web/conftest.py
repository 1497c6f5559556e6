"""The UI in a real browser: one browser per test process, a server per module, a new context per test."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from foliot.api.access.credentials import SESSION_COOKIE
from foliot.api.ui import WEB_DIST
from tests.api.served import OPERATOR_KEY
from tests.servers import PostgresServer
from tests.waiting import until
from tests.web.pages import Watch
from tests.web.served import WebServed, web_served

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
AXE = WEB / "node_modules" / "axe-core" / "axe.min.js"
READER_ZONE = "America/New_York"
WIDE = 1280
NARROW = 390
WITHIN_MS = 15_000
"""Timeout in ms that only prevents a hanging test."""

OpenPage = Callable[..., Page]


@pytest.fixture(scope="session")
def axe(built_ui: None) -> str:
    """Return the source of axe-core, which is installed with the UI's development packages."""
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def built_ui() -> None:
    """Build the UI if it is missing or older than its sources."""
    if shutil.which("npm") is None:
        pytest.fail("Node is not installed: the UI can't be built, nor tested", pytrace=False)
    # With several test processes, only one builds.
    with (WEB / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Install packages first: installing makes an existing build outdated.
        if not AXE.is_file():
            _run("npm", "ci", "--no-audit", "--no-fund", folder=WEB)
        # If another process builds, such as `make run`, the script does not. Its build may be older, so wait
        # for it.
        until(lambda: not _is_being_built())
        _run("scripts/build-web", folder=ROOT)
    assert (WEB_DIST / "index.html").is_file()


def _run(*command: str, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.fail(f"{' '.join(command)}: {done.stderr[-2000:]}", pytrace=False)


def _is_being_built() -> bool:
    marker = WEB_DIST.with_name(f"{WEB_DIST.name}.building")
    try:
        os.kill(int(marker.read_text(encoding="ascii")), 0)
    except (OSError, ValueError):
        return False
    return True


@pytest.fixture(scope="module")
def module_url(postgres_server: PostgresServer) -> Iterator[str]:
    """Create a database for this module."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="module")
def server(module_url: str, built_ui: None) -> Iterator[WebServed]:
    with web_served(module_url) as served:
        yield served


@pytest.fixture(scope="package")
def playwright(postgres_server: PostgresServer) -> Iterator[Playwright]:
    """Start Playwright once for all modules: it takes two CPU-seconds.

    While open, it runs an event loop in this thread, so it must close before tests outside of this package.
    It depends on the database server, because starting that one needs a loop of its own.
    """
    with sync_playwright() as made:
        expect.set_options(timeout=WITHIN_MS)
        yield made


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    # The shell has Chromium's engine, but no windows: loading a page takes less than half the CPU time.
    with launched(playwright, "chromium-headless-shell", "chromium") as made:
        yield made


@contextmanager
def launched(
    playwright: Playwright, *programs: str, without_default_args: Sequence[str] = ()
) -> Iterator[Browser]:
    """Start the first of these programs that is installed; by default Chromium.

    `without_default_args`: default arguments of Playwright to leave out.
    """
    chromium = next(filter(None, map(shutil.which, programs or ("chromium",))), None)
    if chromium is None:
        pytest.fail("Chromium is not installed: `make test` installs it, or says how", pytrace=False)
    arguments = ["--disable-dev-shm-usage", "--disable-gpu"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium can't use its sandbox as root
    made = playwright.chromium.launch(
        executable_path=chromium, args=arguments, ignore_default_args=list(without_default_args)
    )
    yield made
    made.close()


class Cookies(dict[str, str]):
    """Session cookies by role, made when first used. `operator's key`: the session of the operator's key."""

    def __init__(self, server: WebServed) -> None:
        self._server = server

    def __missing__(self, role: str) -> str:
        key = OPERATOR_KEY if role == "operator's key" else self._server.key(role)
        return self.setdefault(role, self._server.cookie(key))


@pytest.fixture(scope="module")
def cookies(server: WebServed) -> Cookies:
    return Cookies(server)


@pytest.fixture
def open_page(server: WebServed, browser: Browser, cookies: Cookies) -> Iterator[OpenPage]:
    """Yield a function that opens pages, each in its own context.

    Errors on a page fail the test that opened it.
    """
    opened: list[tuple[BrowserContext, Watch]] = []

    def open_one(role: str | None = "admin", *, width: int = WIDE, theme: str = "light") -> Page:
        context = browser.new_context(
            base_url=server.url,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id=READER_ZONE,
        )
        context.set_default_timeout(WITHIN_MS)
        if role is not None:
            context.add_cookies([{"name": SESSION_COOKIE, "value": cookies[role], "url": server.url}])
        page = context.new_page()
        opened.append((context, Watch(page)))
        return page

    yield open_one
    for context, _ in opened:
        context.close()
    assert [trouble for _, watch in opened for trouble in watch.troubles] == []


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """Open a page as a signed-in admin, on a wide screen."""
    return open_page()
