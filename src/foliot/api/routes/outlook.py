"""What will happen, and how things stand: preview, status, timeline."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from foliot.api.answer import answer
from foliot.api.body import Form, JsonBody, parse, takes
from foliot.api.calendar_book import book_of
from foliot.api.gate import Caller, GatedRoute
from foliot.api.services import API, Services
from foliot.model.policy import Dst, Window
from foliot.model.trigger import Trigger
from foliot.planning.preview import MOST_FIRES, Preview, preview


class PreviewAsked(Form):
    """A trigger, and whatever else decides its times."""

    trigger: Trigger
    n: int = Field(default=10, ge=1, le=MOST_FIRES, description="How many times.")
    from_ts: AwareDatetime | None = Field(default=None, description="From when on; left out, from now on.")
    dst: Dst = Dst()
    window: Window | None = None
    calendars: Annotated[tuple[Annotated[str, Field(max_length=126)], ...], Field(max_length=50)] = ()
    start_ts: AwareDatetime | None = None
    end_ts: AwareDatetime | None = None
    jitter_seconds: float = Field(default=0, ge=0, le=86400)


class WarningDocument(BaseModel):
    """Something that is allowed, and perhaps not meant."""

    model_config = ConfigDict(title="Warning")

    code: str
    text: str
    at: datetime | None


class FireMark(BaseModel):
    """A fire that changing clocks have to do with."""

    fire: str
    clock_change: str = Field(description="`gap` or `repeat`.")


class PreviewDocument(BaseModel):
    """When a trigger fires."""

    model_config = ConfigDict(title="Preview")

    description: str = Field(examples=["At 02:00 (Europe/Berlin)"])
    fires: list[str] = Field(
        description="In the trigger's zone, with offset.", examples=[["2026-03-29T03:00:00+02:00"]]
    )
    warnings: list[str] = Field(description="Things that are allowed, and perhaps not meant.")
    details: list[WarningDocument] = Field(description="The warnings, for programs.")
    marks: list[FireMark] = Field(description="Which of the fires fall into a change of clocks.")


def preview_document(found: Preview) -> dict[str, Any]:
    return {
        "description": found.description,
        "fires": [fire.local_ts.isoformat() for fire in found.fires],
        "warnings": [warning.text for warning in found.warnings],
        "details": [
            {"code": warning.code, "text": warning.text, "at": warning.at} for warning in found.warnings
        ],
        "marks": [
            {"fire": fire.local_ts.isoformat(), "clock_change": fire.clock_change}
            for fire in found.fires
            if fire.clock_change is not None
        ],
    }


def outlook_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=API, route_class=GatedRoute)

    @router.post(
        "/schedules/preview",
        tags=["schedules"],
        summary="Say when a trigger would fire",
        response_model=PreviewDocument,
        openapi_extra=takes(PreviewAsked),
    )
    async def preview_trigger(caller: Caller, body: JsonBody) -> Response:
        """In words, its next times, and what its author may not have thought of. Stores nothing."""
        asked = parse(PreviewAsked, body)
        book = await book_of(services, caller.host_id, asked.calendars)
        found = preview(
            asked.trigger,
            from_ts=asked.from_ts or services.now(),
            n=asked.n,
            dst=asked.dst,
            window=asked.window,
            start_ts=asked.start_ts,
            end_ts=asked.end_ts,
            calendars=tuple(book.values()),
            jitter_seconds=asked.jitter_seconds,
        )
        return answer(preview_document(found))

    return router
