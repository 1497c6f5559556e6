"""Routes for readers of the outbox: consumer groups, relays and dead letters."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import Field

from foliot.api.access.gate import GatedRoute, Writer
from foliot.api.api_document import ApiDocument
from foliot.api.http.json_response import answer, no_content
from foliot.api.http.request_body import JsonBody, parse_optional, takes
from foliot.api.lists import ListOf
from foliot.api.paging import Paged
from foliot.api.routes.executions import Because
from foliot.api.services import API, Services
from foliot.outbox.dead_letters_sql import DeadLetter
from foliot.outbox.readers_sql import EventAdmin, GroupRecord, ReaderState, RelayRecord

MAX_NAMED = 20
"""Maximum number of groups, and of relays, in the response of `status`."""
GroupName = Annotated[str, Query(min_length=1, max_length=126, pattern="^[^\\x00]+$", examples=["billing"])]
RelayName = Annotated[str, Query(min_length=1, max_length=64, pattern="^[^\\x00]+$", examples=["default"])]
TopicName = Annotated[str, Query(min_length=1, max_length=255, pattern="^[^\\x00]+$", examples=["orders"])]


class EventGroupDocument(ApiDocument):
    """A group of consumers."""

    group: str
    source: str = Field(description="`database`, or `kafka`, which keeps the group's offsets itself.")
    partitions: int
    next_offset: int | None = Field(description="All before it is handled; null: Kafka knows.")
    lag: int = Field(description="How many events its last partition is behind.")
    oldest_unread_ts: datetime | None = Field(
        description="When the oldest event was made that it has not read."
    )
    seen_ts: datetime = Field(description="When one of its consumers last ran, to about half a minute.")
    is_running: bool
    state: ReaderState = Field(
        description="`behind`: its oldest unread event has waited for a minute. `abandoned`: for an hour, "
        "and nobody runs it; it keeps events from being pruned."
    )


class RefusedTopicDocument(ApiDocument):
    """A topic that the broker refuses: the relay goes on without it, and tries it again."""

    topic: str
    next_offset: int = Field(description="The first of its events that is not sent.")
    reason: str
    since_ts: datetime
    tried_ts: datetime


class EventRelayDocument(ApiDocument):
    """What ships events to a broker."""

    name: str
    instance_id: str | None = Field(description="The active one; null: none.")
    next_offset: int
    lag: int
    oldest_unread_ts: datetime | None
    is_running: bool
    state: ReaderState
    refused_topics: list[RefusedTopicDocument] = Field(description="The first 20.")


class DeadEventDocument(ApiDocument):
    id: str
    type: str
    topic: str
    offset: int
    host_id: str


class DeadLetterDocument(ApiDocument):
    """An event that a group could not handle, or that a broker did not take."""

    dead_letter_id: UUID
    group: str = Field(description="`relay:default`: the relay.")
    events: list[DeadEventDocument]
    error: str
    attempts: int
    created_ts: datetime
    replay_requested_ts: datetime | None = Field(description="Since when it waits to be replayed.")


def group_document(found: GroupRecord) -> dict[str, Any]:
    return asdict(found)


def relay_document(found: RelayRecord) -> dict[str, Any]:
    return asdict(found)


def not_well(groups: Sequence[GroupRecord], relays: Sequence[RelayRecord]) -> dict[str, Any]:
    """Return the groups and relays that have a problem, for `status`."""
    behind = [each for each in groups if each.state is not ReaderState.OK]
    behind.sort(key=lambda each: (each.state is not ReaderState.ABANDONED, -each.lag))
    return {
        "event_groups": [group_document(each) for each in behind[:MAX_NAMED]],
        "event_relays": [relay_document(each) for each in relays if not each.is_well][:MAX_NAMED],
    }


def _letter_document(letter: DeadLetter) -> dict[str, Any]:
    return {
        "dead_letter_id": letter.dead_letter_id,
        "group": letter.group_id,
        "events": [{name: each[name] for name in DeadEventDocument.model_fields} for each in letter.events],
        "error": letter.error,
        "attempts": letter.attempts,
        "created_ts": letter.created_ts,
        "replay_requested_ts": letter.replay_requested_ts,
    }


def event_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=f"{API}/events", route_class=GatedRoute, tags=["events"])
    admin = EventAdmin(services.database)

    @router.get("/groups", summary="List groups of consumers", response_model=ListOf[EventGroupDocument])
    async def list_groups(page: Paged) -> Response:
        rows = await admin.groups(limit=page.limit, after=page.after_text())
        return page.answer(rows, group_document, lambda row: [row.group])

    @router.delete("/groups", status_code=204, summary="Delete a group of consumers")
    async def delete_group(author: Writer, group: GroupName) -> Response:
        """It keeps no events from being pruned any more. One that runs is a 409. Its dead letters stay."""
        await admin.delete_group(group, author)
        return no_content()

    @router.get("/relays", summary="List relays", response_model=ListOf[EventRelayDocument])
    async def list_relays(page: Paged) -> Response:
        rows = [each for each in await admin.relays() if each.name > page.after_text()]
        return page.answer(rows[: page.limit], relay_document, lambda row: [row.name])

    @router.delete("/relays", status_code=204, summary="Delete a relay, or give up a refused topic")
    async def delete_relay(author: Writer, name: RelayName, topic: TopicName | None = None) -> Response:
        """One that runs is a 409. With `topic`: only what it has not sent of that refused topic."""
        if topic is None:
            await admin.delete_relay(name, author)
        else:
            await admin.delete_refused_topic(name, topic, author)
        return no_content()

    @router.get("/dead-letters", summary="List dead letters", response_model=ListOf[DeadLetterDocument])
    async def list_dead_letters(page: Paged, group: GroupName | None = None) -> Response:
        """Those that were not replayed since, oldest first."""
        rows = await admin.dead_letters(group=group, after=page.after_id(), limit=page.limit)
        return page.answer(rows, _letter_document, lambda row: [str(row.dead_letter_id)])

    @router.post(
        "/dead-letters/{dead_letter_id}/replay",
        status_code=202,
        summary="Replay a dead letter",
        response_model=DeadLetterDocument,
        openapi_extra=takes(Because, is_required=False),
    )
    async def replay(dead_letter_id: UUID, author: Writer, body: JsonBody) -> Response:
        """A process of its group tries it once more, within a few seconds while one runs."""
        because = author.because(parse_optional(Because, body).reason)
        return answer(_letter_document(await admin.replay(dead_letter_id, because)), 202)

    @router.delete("/dead-letters/{dead_letter_id}", status_code=204, summary="Delete a dead letter")
    async def delete_dead_letter(dead_letter_id: UUID, author: Writer) -> Response:
        await admin.delete_dead_letter(dead_letter_id, author)
        return no_content()

    return router
