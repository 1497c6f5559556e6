"""The route that streams changes as server-sent events.

Every event and every heartbeat has an id. A client that reconnects with the last id it received
(`Last-Event-ID`, which browsers send automatically) continues from there, or gets a `reset`: it must read the
lists again.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from fastapi.routing import APIRoute
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from foliot.api.change_feed import (
    Feed,
    StreamFilter,
    StreamKind,
    Subscription,
    data_of,
    message_of,
)
from foliot.api.http.error_responses import PROBLEM_JSON
from foliot.model.errors import DatabaseUnreachableError, InvalidError, OverloadedError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.queries.changes import PROGRESS_LETTERS, ExecutionStanding, ScheduleChange
from foliot.timing.clock import Clock

HEARTBEAT_S = 15.0
CHECK_EVERY_S = 30.0
"""How often the credential is checked again: a stream may outlive its credential by this time."""
UNSURE_S = 2.0
"""Wait before the credential is checked again after the check failed. Nothing is sent meanwhile."""
BEGINNING_LIMIT_S = 10.0
"""How long a request may wait for the feed to start."""
RECONNECT_S = (1.0, 4.0)
"""Range of the random reconnect delay, so that not all clients reconnect at once after a restart."""
MAX_SCHEDULES = 100

IsStillValid = Callable[[], Awaitable[bool]]


async def messages(
    subscription: Subscription, clock: Clock, is_still_valid: IsStillValid
) -> AsyncIterator[bytes]:
    """Yield the messages for one client, until its credential is no longer valid or the feed is closed."""
    reconnect_s = random.uniform(*RECONNECT_S)  # noqa: S311 - spreads load, hides nothing
    yield ServerSentEvent(retry=int(1000 * reconnect_s), sep="\n").encode()
    beat_at = clock.monotonic()
    check_at = beat_at + CHECK_EVERY_S
    while not subscription.is_ended:
        now = clock.monotonic()
        if now >= check_at:
            try:
                if not await is_still_valid():
                    return
            except DatabaseUnreachableError:
                await subscription.wait(UNSURE_S)
                continue
            check_at = now + CHECK_EVERY_S
        events = subscription.take()
        if events:
            beat_at = now + HEARTBEAT_S
            yield b"".join(event.message for event in events)
        elif now >= beat_at:
            beat_at = now + HEARTBEAT_S
            # An id without data advances the client's position past filtered events, without an event.
            yield ServerSentEvent(comment="heartbeat", id=subscription.event_id, sep="\n").encode()
        else:
            await subscription.wait(min(beat_at, check_at) - now)


class _Stream(EventSourceResponse):
    """The response. It ends the subscription, also if the client left before the first message."""

    def __init__(self, subscription: Subscription, content: AsyncIterator[bytes]) -> None:
        # The library's own heartbeats have no ids.
        super().__init__(content, ping=0)
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._subscription.leave()


# --- for the OpenAPI -------------------------------------------------------------------------------


def _fields(kind: type[ScheduleChange] | type[ExecutionStanding]) -> str:
    return ", ".join(f"`{name}`" for name in kind._fields if name != "host_id")


_DESCRIPTION = f"""\
Server-sent events: each has an `id`, a kind as its `event`, and a JSON object as its `data`.

| event | sent when | data |
|---|---|---|
| `schedule` | a schedule was created, edited, paused, resumed or deleted | {_fields(ScheduleChange)} |
| `execution` | one was made, or something of this has changed | {_fields(ExecutionStanding)} |
| `status` | the figures have changed | `counts` of open executions by status (null: too many), `leaders` |
| `reset` | events were left out: read the lists again | `reason` |

The text of a `progress` is cut after {PROGRESS_LETTERS} letters. Several changes of one thing in quick
succession may be sent as one, the last; a change may be sent twice. The reason of a `reset` is
`too_many_changes`, `too_slow` (the client) or `unknown_event_id`.

To miss nothing, open the stream first and read the lists then. A client that comes back with
`Last-Event-ID` gets what it has missed, or a `reset` where that is not known any more. There is a comment at
least every {HEARTBEAT_S:.0f} seconds. The stream ends when the credential is no longer valid."""

_FIRE_TS = datetime(2026, 3, 1, 2, tzinfo=UTC)
_SCHEDULE_ID = UUID("019ca74b-9e00-7a4d-8e5f-6a7b8c9d0e1f")

_EXAMPLES: dict[StreamKind, dict[str, Any]] = {
    StreamKind.SCHEDULE: data_of(
        ScheduleChange(
            host_id=DEFAULT_HOST_ID,
            schedule_id=_SCHEDULE_ID,
            name="nightly-report",
            change="paused",
            aggregate_version=4,
        )
    ),
    StreamKind.EXECUTION: data_of(
        ExecutionStanding(
            host_id=DEFAULT_HOST_ID,
            execution_id=UUID("019ca755-0c80-7d3e-9b1f-3f2a5c6d7e8f"),
            schedule_id=_SCHEDULE_ID,
            schedule_name="nightly-report",
            status="running",
            attempt=1,
            progress={"fraction": 0.5, "text": "half way"},
            fire_ts=_FIRE_TS,
            started_ts=_FIRE_TS,
            ended_ts=None,
            duration_seconds=None,
        )
    ),
    StreamKind.STATUS: {
        "counts": {"pending": 3, "retrying": 0, "running": 2},
        "leaders": ["node-1-4711-a1b2c3"],
    },
    StreamKind.RESET: {"reason": "too_many_changes"},
}

_EVENTS: dict[str, Any] = {
    "schema": {"type": "string"},
    "examples": {
        kind.value: {"value": message_of(f"3f9a1c2b-{number}", kind, data).decode()}
        for number, (kind, data) in enumerate(_EXAMPLES.items(), start=17)
    },
}

_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The events, without an end", "content": {"text/event-stream": _EVENTS}},
    422: {"description": "A parameter is not as it should be", "content": {PROBLEM_JSON: {}}},
    503: {
        "description": "Too many streams are open here, or the database can't be reached now",
        "content": {PROBLEM_JSON: {}},
    },
}


# --- the route -------------------------------------------------------------------------------------


def stream_routes(
    feed: Feed,
    clock: Clock,
    is_still_valid: Callable[[Request], Awaitable[bool]],
    route_class: type[APIRoute] = APIRoute,
) -> APIRouter:
    """Return the stream route. `is_still_valid` says whether a request's credential is still valid."""
    router = APIRouter(prefix="/api/v1", tags=["stream"], route_class=route_class)

    @router.get(
        "/stream",
        response_class=EventSourceResponse,
        responses=_RESPONSES,
        summary="Hear of changes as they happen",
        description=_DESCRIPTION,
    )
    async def stream(
        request: Request,
        schedule_id: Annotated[
            list[UUID] | None,
            Query(max_length=MAX_SCHEDULES, description="Only of these schedules and their executions"),
        ] = None,
        kinds: Annotated[
            str | None,
            Query(description="Only these kinds of events, with commas between", examples=["execution"]),
        ] = None,
        last_event_id: Annotated[
            str | None, Header(description="The id of the last event, to go on from there")
        ] = None,
    ) -> EventSourceResponse:
        wanted = StreamFilter(request.state.principal.host_id, _kinds_of(kinds), frozenset(schedule_id or ()))
        subscription = await _listen(feed, wanted, last_event_id)
        return _Stream(subscription, messages(subscription, clock, lambda: is_still_valid(request)))

    return router


def _kinds_of(text: str | None) -> frozenset[StreamKind]:
    if text is None:
        return frozenset(StreamKind)
    try:
        return frozenset(StreamKind(each.strip()) for each in text.split(","))
    except ValueError:
        hint = f"some of: {', '.join(StreamKind)}"
        raise InvalidError.at("/kinds", "unknown_kind", "names an unknown kind", hint) from None


async def _listen(feed: Feed, wanted: StreamFilter, last_event_id: str | None) -> Subscription:
    try:
        async with asyncio.timeout(BEGINNING_LIMIT_S):
            return await feed.listen(wanted, last_event_id)
    except TimeoutError:
        raise OverloadedError("changes can't be read now; try again in a moment") from None
