"""The path of a request, inside the application and as clients see it.

The application can be served under a path: mounted in another application, or behind a proxy. This path is
ASGI's `root_path`, and ASGI's `path` begins with it. Code that depends on the path must use `path_of`.
"""

from urllib.parse import quote, unquote

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_OWN = "/api/v1/"


def root_of(scope: Scope) -> str:
    """Return the path under which clients reach the application, without a slash at the end. "": none."""
    return str(scope.get("root_path", "")).rstrip("/")


def path_of(scope: Scope) -> str:
    """Return the path inside the application, without `root_path`."""
    path, root = str(scope["path"]), root_of(scope)
    if root and f"{path}/".startswith(f"{root}/"):
        return path[len(root) :] or "/"
    return path


class PublicPath:
    """Middleware that serves an application under a path, and adds this path to `Location` headers.

    `prefix` is the path of FOLIOT_PUBLIC_URL. A proxy may strip it or pass it on. If the application is
    mounted in another one, the path of the mount is used instead.
    """

    def __init__(self, app: ASGIApp, prefix: str = "") -> None:
        self._app = app
        self._prefix = unquote(prefix).rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._prefix and not root_of(scope):
            scope = {**scope, "root_path": self._prefix, "path": self._with_prefix(scope["path"])}
        root = root_of(scope)

        async def send_with_root(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                location = headers.get("location", "")
                if location.startswith("/"):
                    headers["location"] = f"{quote(root)}{location}"
            await send(message)

        await self._app(scope, receive, send_with_root if root else send)

    def _with_prefix(self, path: str) -> str:
        # With the prefix /api, a path whose prefix was stripped, /api/v1/…, still begins with it.
        has_prefix = f"{path}/".startswith(f"{self._prefix}/") and not path.startswith(_OWN)
        return path if has_prefix else f"{self._prefix}{path}"
