"""The web interface: its page, the files that the page loads, and a placeholder until it is built.

It is a single-page application: every path that a browser requests and no route of the API matches gets the
same page. Files are read from disk on each request, so that a build that ends while the server runs is served
at once. The page contains nothing confidential, so it is not behind the gate; it gets its data from the API.
"""

import hashlib
import os
import re
from contextlib import suppress
from html import escape
from pathlib import Path
from urllib.parse import quote

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from foliot.api.http.middleware import API_PREFIX
from foliot.api.http.paths import path_of, root_of
from foliot.version import __version__

WEB_DIST = Path(__file__).parent.parent / "web_dist"
"""The output folder of `scripts/build-web`."""

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    )
)
REFRESH_S = 2

_ASSET = re.compile(r"/assets/[A-Za-z0-9_-][A-Za-z0-9._-]*")
_BESIDE = ("/theme.js", "/mark.svg", "/THIRD_PARTY_LICENSES.txt")
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
_RELATIVE = '="./'
"""How the paths of files begin in the built page."""
_NO_BASE = 'name="foliot-base" content=""'
"""The element from which the page reads the path that it is mounted at."""
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}

_ABOUT = f"""\
Foliot {__version__}: a distributed scheduler. Every due time is decided exactly once.

/               in a browser: the web interface
/api/v1/        schedules, executions and all else: needs a credential
/openapi.json   every route, described
/healthz        whether this process is alive
/readyz         whether it can do its work, and why not
/metrics        what it measures, for Prometheus
"""

_STAND_IN = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{head}<title>Foliot</title>
</head>
<body>
<h1>Foliot</h1>
{body}
<p>Everything else runs: the API at <code>/api/v1</code>, and the command line.</p>
</body>
</html>
"""
_BEING_BUILT = _STAND_IN.format(
    head=f'<meta http-equiv="refresh" content="{REFRESH_S}">\n',
    body="<p>The UI is being built. This page shows it as soon as it is ready.</p>",
)
_NOT_BUILT = _STAND_IN.format(
    head="",
    body="<p>The UI is not built. With Node 20.19 or newer installed, run <code>scripts/build-web</code> "
    "in the project's folder, and load this page again.</p>",
)


def ui_routes(folder: Path = WEB_DIST) -> list[BaseRoute]:
    """Return the routes of the UI. Add them after all others, because they match every other path."""
    ui = Ui(folder)

    async def root(request: Request) -> Response:
        if not _wants_html(request):
            return PlainTextResponse(_ABOUT, headers={"Vary": "Accept"})
        return await ui.answer(request)

    return [Route("/", root, methods=["GET"], include_in_schema=False), ui]


class Ui(BaseRoute):
    """Serves the files of the page, and the page itself for every other path that a browser requests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._marker = folder.with_name(f"{folder.name}.building")
        """A file that exists during a build and contains the id of the building process."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            return Match.NONE, {}
        request = Request(scope)
        path = path_of(scope)
        # An unknown path of the API is an error, not a page.
        is_page = not f"{path}/".startswith(API_PREFIX) and _wants_html(request)
        return (Match.FULL if _is_file(path) or is_page else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self.answer(Request(scope))
        await response(scope, receive, send)

    async def answer(self, request: Request) -> Response:
        # In a thread, because file access can block.
        response = await anyio.to_thread.run_sync(self._answer, request)
        response.headers["Content-Security-Policy"] = POLICY
        return response

    def _answer(self, request: Request) -> Response:
        path = path_of(request.scope)
        if _is_file(path):
            found = self._file(request, path, _FOR_EVER if path not in _BESIDE else _ASK_AGAIN)
            if found is None:
                raise HTTPException(404, "there is nothing at this address")
            return found
        try:
            html = (self._folder / "index.html").read_text(encoding="utf-8")
        except OSError:
            html = _BEING_BUILT if self._is_being_built() else _NOT_BUILT
            return HTMLResponse(html, headers={"Cache-Control": "no-store"})
        return _page(request, html)

    def _file(self, request: Request, path: str, caching: str) -> Response | None:
        """Return a file of the build, gzipped if possible. None: there is no such file."""
        file = self._folder / path.removeprefix("/")
        media_type = _MEDIA_TYPES.get(file.suffix)
        if media_type is None or not file.is_file():
            return None
        headers = {"Cache-Control": caching, "Vary": "Accept-Encoding"}
        compressed = file.with_name(f"{file.name}.gz")
        if _takes_gzip(request) and compressed.is_file():
            file = compressed
            headers["Content-Encoding"] = "gzip"
        return FileResponse(file, headers=headers, media_type=media_type)

    def _is_being_built(self) -> bool:
        try:
            builder = int(self._marker.read_text(encoding="ascii"))
            return builder > 0 and _lives(builder)
        except (OSError, ValueError, OverflowError):
            return False


def _page(request: Request, html: str) -> Response:
    """Return the page, with its mount path inserted before the paths of its files."""
    root = escape(quote(root_of(request.scope)))
    html = html.replace(_RELATIVE, f'="{root}/').replace(_NO_BASE, f'{_NO_BASE[:-1]}{root}"')
    etag = f'"{hashlib.blake2b(html.encode(), digest_size=16).hexdigest()}"'
    headers = {"Cache-Control": _ASK_AGAIN, "Vary": "Accept", "ETag": etag}
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return HTMLResponse(html, headers=headers)


def _lives(number: int) -> bool:
    """Return True if a process with this id exists, else raise ProcessLookupError."""
    with suppress(PermissionError):  # it exists, and belongs to another user
        os.kill(number, 0)
    return True


def _is_file(path: str) -> bool:
    return path in _BESIDE or _ASSET.fullmatch(path) is not None


def _wants_html(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")
