"""Routes for calendars, secrets, and the events of the outbox."""

import asyncio
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict, Field

from foliot.access.secrets_sql import SecretName
from foliot.api.access.gate import Caller, GatedRoute, ReservedId, Writer
from foliot.api.api_document import ApiDocument
from foliot.api.http.json_response import answer, no_content
from foliot.api.http.request_body import Form, JsonBody, parse, require_object, takes
from foliot.api.lists import ListOf
from foliot.api.paging import MAX_PER_PAGE, Paged
from foliot.api.services import API, Services
from foliot.model.calendar import CalendarSpec
from foliot.model.errors import InvalidError, NotFoundError
from foliot.queries.outbox_list import OutboxList, OutboxMessage
from foliot.scheduler.calendars_sql import CalendarRecord, Calendars
from foliot.timing.calendar import parse_ical


class CalendarDocument(CalendarSpec):
    """A calendar: a named set of excluded days."""

    model_config = ConfigDict(title="Calendar")

    calendar_id: UUID
    updated_by: str | None
    created_ts: datetime
    updated_ts: datetime


class CalendarFile(Form):
    """An iCalendar file whose events' days become a calendar."""

    name: str = Field(min_length=1, max_length=126)
    ical: str = Field(min_length=1, description="The text of the file.", examples=["BEGIN:VCALENDAR…"])
    description: str = Field(default="", max_length=2000)
    timezone: str | None = None


class NewSecret(Form):
    """A value for `${secret:name}`. It can be written and never read."""

    name: str = Field(min_length=1, max_length=126, examples=["agent_token"])
    value: str = Field(min_length=1, max_length=32 * 1024, json_schema_extra={"writeOnly": True})


class SecretDocument(ApiDocument):
    """What may be known of a secret."""

    name: str
    updated_ts: datetime


class RotatedDocument(ApiDocument):
    """How many secrets were encrypted anew."""

    rotated: int


class EventDocument(ApiDocument):
    """An event of the outbox."""

    offset: int
    id: UUID
    event_topic: str
    event_type: str
    event_ts: datetime
    aggregate_id: str
    aggregate_type: str
    aggregate_version: int
    transaction_id: UUID
    transaction_ordinal: int
    transaction_count: int
    payload: Any = Field(description="A CloudEvents 1.0 document.")


class EventPage(ListOf[EventDocument]):
    """A page of the outbox."""

    last_offset: int = Field(description="That of the latest event; 0: there is none.")


def _calendar_document(record: CalendarRecord) -> dict[str, Any]:
    return {
        **record.spec.model_dump(mode="json"),
        "calendar_id": record.calendar_id,
        "updated_by": record.updated_by,
        "created_ts": record.created_ts,
        "updated_ts": record.updated_ts,
    }


def _secret_document(secret: SecretName) -> dict[str, Any]:
    return {"name": secret.name, "updated_ts": secret.updated_ts}


def _event_document(message: OutboxMessage) -> dict[str, Any]:
    fields = {name: getattr(message, name) for name in EventDocument.model_fields if hasattr(message, name)}
    return {**fields, "offset": message.c_offset}


def shared_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=API, route_class=GatedRoute)
    _add_calendars(router, services)
    _add_secrets(router, services)

    @router.get("/events", tags=["events"], summary="Read the outbox in order", response_model=EventPage)
    async def list_events(
        caller: Caller,
        after: Annotated[int, Query(ge=0, le=2**62, description="The offset to go on behind.")] = 0,
        page_size: Annotated[int, Query(ge=1, le=MAX_PER_PAGE)] = 50,
    ) -> Response:
        """Oldest first, without gaps. `next_page_token` is the offset to ask for next."""
        rows = await OutboxList(services.database).after(caller.host_id, after, limit=page_size)
        token = str(rows[-1].c_offset) if len(rows) == page_size else ""
        document = {
            "items": [_event_document(row) for row in rows],
            "next_page_token": token,
            "last_offset": await OutboxList(services.database).latest_offset(caller.host_id),
        }
        return answer(document)

    return router


def _add_calendars(router: APIRouter, services: Services) -> None:
    calendars, commands = Calendars(services.database), services.commands.shared
    tags: list[Any] = ["calendars"]

    @router.get("/calendars", tags=tags, summary="List calendars", response_model=ListOf[CalendarDocument])
    async def list_calendars(caller: Caller, page: Paged) -> Response:
        """In order of name."""
        rows = await calendars.list_all(caller.host_id, limit=page.limit, after_name=page.after_text())
        return page.answer(rows, _calendar_document, lambda row: [row.spec.name])

    @router.post(
        "/calendars",
        tags=tags,
        status_code=201,
        summary="Make a calendar",
        response_model=CalendarDocument,
        openapi_extra=takes(CalendarSpec),
    )
    async def make_calendar(caller: Caller, author: Writer, body: JsonBody, reserved: ReservedId) -> Response:
        """A name that is taken is a 409; to replace one, PUT it."""
        spec = parse(CalendarSpec, body)
        record = await commands.set_calendar(
            caller.host_id, spec, author, replaces=False, calendar_id=reserved
        )
        return answer(_calendar_document(record), 201, {"Location": _location(spec)})

    @router.post(
        "/calendars/import",
        tags=tags,
        status_code=201,
        summary="Make or replace a calendar by an iCalendar file",
        response_model=CalendarDocument,
        openapi_extra=takes(CalendarFile),
    )
    async def import_calendar(caller: Caller, author: Writer, body: JsonBody) -> Response:
        """The days that the file's events cover."""
        asked = parse(CalendarFile, body)
        # In a thread, because parsing a file with many rules takes seconds.
        days = await asyncio.to_thread(parse_ical, asked.ical)
        about = asked.model_dump(exclude={"ical"})
        spec = parse(CalendarSpec, {**about, "days": days})
        record = await commands.set_calendar(caller.host_id, spec, author)
        return answer(_calendar_document(record), 201, {"Location": _location(spec)})

    @router.get("/calendars/{name}", tags=tags, summary="Read a calendar", response_model=CalendarDocument)
    async def read_calendar(name: str, caller: Caller) -> Response:
        return answer(_calendar_document(await calendars.get(caller.host_id, _findable("calendar", name))))

    @router.put(
        "/calendars/{name}",
        tags=tags,
        summary="Make or replace a calendar",
        response_model=CalendarDocument,
        openapi_extra=takes(CalendarSpec),
    )
    async def set_calendar(name: str, caller: Caller, author: Writer, body: JsonBody) -> Response:
        """Schedules that use it follow it from their next time on."""
        document = {"name": name, **require_object(body)}
        spec = parse(CalendarSpec, document)
        if spec.name != name:
            raise InvalidError.at("/name", "name", "is not the name in the address", f"{name}, or none")
        return answer(_calendar_document(await commands.set_calendar(caller.host_id, spec, author)))

    @router.delete("/calendars/{name}", tags=tags, status_code=204, summary="Delete a calendar")
    async def delete_calendar(name: str, caller: Caller, author: Writer) -> Response:
        """One that schedules use is a 409, and says which."""
        await commands.delete_calendar(caller.host_id, _findable("calendar", name), author)
        return no_content()


def _add_secrets(router: APIRouter, services: Services) -> None:
    secrets = services.secrets
    tags: list[Any] = ["secrets"]

    @router.get(
        "/secrets", tags=tags, summary="List the names of secrets", response_model=ListOf[SecretDocument]
    )
    async def list_secrets(caller: Caller, page: Paged) -> Response:
        """Names only: values can't be read."""
        rows = await secrets.names(caller.host_id, limit=page.limit, after_name=page.after_text())
        return page.answer(rows, _secret_document, lambda row: [row.name])

    @router.post(
        "/secrets",
        tags=tags,
        status_code=201,
        summary="Set a secret",
        response_model=SecretDocument,
        openapi_extra=takes(NewSecret),
    )
    async def set_secret(caller: Caller, author: Writer, body: JsonBody) -> Response:
        """Kept encrypted. A name that there is gets the new value."""
        asked = parse(NewSecret, body)
        await secrets.set(caller.host_id, asked.name, asked.value, author)
        return answer({"name": asked.name, "updated_ts": services.now()}, 201)

    @router.post(
        "/secrets/rotate", tags=tags, summary="Encrypt all secrets anew", response_model=RotatedDocument
    )
    async def rotate(author: Writer) -> Response:
        """Under the first key of FOLIOT_SECRET_KEY, for all hosts; then the other keys can be taken out."""
        return answer({"rotated": await secrets.rotate(author)})

    @router.delete("/secrets/{name}", tags=tags, status_code=204, summary="Delete a secret")
    async def delete_secret(name: str, caller: Caller, author: Writer) -> Response:
        await secrets.delete(caller.host_id, _findable("secret", name), author)
        return no_content()


def _location(calendar: CalendarSpec) -> str:
    return f"{API}/calendars/{quote(calendar.name, safe='')}"


def _findable(what: str, name: str) -> str:
    """Return the name. Raises NotFoundError if it contains NUL, which no database can store."""
    if "\0" in name:
        raise NotFoundError(what, repr(name))
    return name
