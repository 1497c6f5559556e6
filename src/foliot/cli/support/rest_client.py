"""REST client for commands: one request at a time, with timeouts, and retries only where they are safe.

Reads are safe to retry, and so are requests with an Idempotency-Key, which the server executes once. If
another request gets no response, the error says that it may or may not have been executed.
"""

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import httpx2

from foliot.cli.support.api_failures import ApiRefusedError, TimedOutError, UnreachableError
from foliot.cli.support.server_choice import Server
from foliot.model.errors import InvalidError
from foliot.version import __version__

CONNECT_S = 5.0
READ_S = 60.0
TRIES = 3
FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 5.0
PAGE = 500
MERGE_PATCH = "application/merge-patch+json"

Params = Mapping[str, Any]
"""Query parameters. None and empty lists are left out; a list is sent as repeated parameters."""


class ListPage(NamedTuple):
    """A page of a list, and the token of the next page. Empty token: it was the last page."""

    items: list[dict[str, Any]]
    token: str


class ListedItems(NamedTuple):
    """Items of a list, and whether the list has more than the limit."""

    items: list[dict[str, Any]]
    has_more: bool


class StreamEvent(NamedTuple):
    """An event of the stream. A heartbeat has no data."""

    kind: str
    data: str


class ApiClient:
    """A client of the API, and a context manager.

    Raises ApiRefusedError, UnreachableError and TimedOutError.
    """

    def __init__(
        self,
        server: Server,
        *,
        read_s: float = READ_S,
        connect_s: float = CONNECT_S,
        tries: int = TRIES,
        transport: httpx2.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.server = server
        self._tries = tries
        self._sleep = sleep
        self._timeout = httpx2.Timeout(read_s, connect=connect_s)
        self._http = httpx2.Client(
            transport=transport,
            trust_env=False,
            # Reading the TLS authorities takes 40 ms and is not needed without TLS.
            verify=not server.url.startswith("http://"),
            timeout=self._timeout,
            headers={
                "Authorization": f"Bearer {server.key}",
                "User-Agent": f"foliot-cli/{__version__}",
                "Accept": "application/json",
            },
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    # --- requests ----------------------------------------------------------------------------------

    def get(self, path: str, params: Params | None = None) -> Any:
        return self._ask("GET", path, params=params, is_harmless=True)

    def page(self, path: str, params: Params | None = None) -> ListPage:
        answer = self.get(path, params)
        if not isinstance(answer, dict) or not isinstance(answer.get("items"), list):
            raise ApiRefusedError(200, {"detail": f"{self.server.url} does not answer as Foliot does"})
        return ListPage(answer["items"], str(answer.get("next_page_token", "")))

    def items(self, path: str, params: Params | None = None, *, limit: int | None = None) -> ListedItems:
        """Read a list page by page, up to `limit` items. None: no limit."""
        found: list[dict[str, Any]] = []
        token = ""
        while True:
            wanted = PAGE if limit is None else min(PAGE, limit - len(found))
            page = self.page(path, {**(params or {}), "page_size": wanted, "page_token": token or None})
            found += page.items
            token = page.token
            if not token or (limit is not None and len(found) >= limit):
                return ListedItems(found, bool(token))

    def post(self, path: str, body: Any = None, *, is_once: bool = False) -> Any:
        """Send a POST. `is_once` adds an Idempotency-Key, so that retries execute it only once."""
        headers = {"Idempotency-Key": str(uuid.uuid4())} if is_once else {}
        return self._ask("POST", path, body=body, headers=headers, is_harmless=is_once)

    def put(self, path: str, body: Any) -> Any:
        return self._ask("PUT", path, body=body)

    def patch(self, path: str, body: Any) -> Any:
        return self._ask("PATCH", path, body=body, headers={"Content-Type": MERGE_PATCH})

    def delete(self, path: str, params: Params | None = None) -> None:
        self._ask("DELETE", path, params=params)

    @contextmanager
    def stream(self, params: Params, *, silence_s: float) -> Iterator[Iterator[StreamEvent]]:
        """Open the stream of changes. Raises TimedOutError after `silence_s` seconds without an event."""
        limits = httpx2.Timeout(silence_s, connect=CONNECT_S)
        try:
            address = self._address("stream")
            with self._http.sse(address, params=_flat(params), timeout=limits) as source:
                if source.response.status_code != httpx2.codes.OK:
                    source.response.read()
                    raise _refusal(source.response)
                yield (StreamEvent(each.event, each.data) for each in source)
        except httpx2.TimeoutException:
            raise TimedOutError("the stream of changes fell silent") from None
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from None

    # --- sending -----------------------------------------------------------------------------------

    def _address(self, path: str) -> str:
        return f"{self.server.url}/api/v1/{path}"

    def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        is_harmless: bool = False,
    ) -> Any:
        request = self._request(method, path, params, body, headers or {})
        left = self._tries if is_harmless else 1
        wait_s = FIRST_WAIT_S
        while True:
            left -= 1
            try:
                response = self._http.send(request)
            except (httpx2.ConnectTimeout, httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
                if not left:
                    raise self._unreachable(error, is_sent=not is_harmless) from None
            except httpx2.TimeoutException:
                raise TimedOutError(
                    f"{self.server.url} did not answer within {self._timeout.read:.0f} s{_doubt(is_harmless)}"
                ) from None
            except httpx2.HTTPError as error:
                raise self._unreachable(error) from None
            else:
                if response.status_code != httpx2.codes.SERVICE_UNAVAILABLE or not left:
                    if _is_replay_without_body(response):
                        # The first request was executed, but its response was too large to be stored.
                        return self._ask("GET", _path_within_api(response), is_harmless=True)
                    return _answer(response)
                wait_s = max(wait_s, _retry_after(response))
            self._sleep(min(wait_s, LONGEST_WAIT_S))
            wait_s *= 2

    def _request(
        self, method: str, path: str, params: Params | None, body: Any, headers: Mapping[str, str]
    ) -> httpx2.Request:
        try:
            content = None if body is None else json.dumps(body, allow_nan=False).encode()
            kind = {} if content is None else {"Content-Type": "application/json"}
            return self._http.build_request(
                method,
                self._address(path),
                params=_flat(params or {}),
                content=content,
                headers={**kind, **headers},
            )
        except (httpx2.InvalidURL, UnicodeEncodeError):
            raise InvalidError.at("", "text", "has characters that can't be sent") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidError.at("", "json", f"can't be sent as JSON: {error}") from None

    def _unreachable(self, error: Exception, *, is_sent: bool = False) -> UnreachableError:
        reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
        is_connected = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
        if not is_connected and isinstance(error, httpx2.ConnectTimeout):
            reason = f"no connection within {CONNECT_S:.0f} s"
        return UnreachableError(
            f"{self.server.url} can't be reached: {reason}{_doubt(not (is_sent and is_connected))}"
        )


def path_of(*parts: str) -> str:
    """Join parts to a path, with each part escaped: names come from users."""
    return "/".join(quote(part, safe="") for part in parts)


def _doubt(is_harmless: bool) -> str:
    return "" if is_harmless else "; it is not known whether it was done"


def _flat(params: Params) -> httpx2.QueryParams:
    flat: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in params.items():
        values: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
        flat += [(name, _text(each)) for each in values if each is not None]
    return httpx2.QueryParams(flat)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _is_replay_without_body(response: httpx2.Response) -> bool:
    is_replay = response.is_success and "Idempotency-Replayed" in response.headers
    return is_replay and not response.content and "Location" in response.headers


def _path_within_api(response: httpx2.Response) -> str:
    """Return the resource in the `Location` header, as a path relative to the API's base."""
    return response.headers["Location"].partition("/api/v1/")[2]


def _answer(response: httpx2.Response) -> Any:
    if not response.is_success:
        raise _refusal(response)
    if response.status_code == httpx2.codes.NO_CONTENT:
        return None
    document = _document(response)
    if document is None:
        raise ApiRefusedError(
            response.status_code, {"detail": f"{response.url} does not answer as Foliot does"}
        )
    return document


def _refusal(response: httpx2.Response) -> ApiRefusedError:
    document = _document(response)
    if not isinstance(document, dict):
        said = f"{response.url.host} answered {response.status_code} {response.reason_phrase}".rstrip()
        document = {"detail": f"{said}, not as Foliot does"}
    return ApiRefusedError(response.status_code, document)


def _document(response: httpx2.Response) -> Any:
    try:
        return json.loads(response.content)
    except ValueError:
        return None


def _retry_after(response: httpx2.Response) -> float:
    try:
        return float(response.headers.get("Retry-After", ""))
    except ValueError:
        return 0.0
