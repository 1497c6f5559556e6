"""The `event` target, and the SDK's `event`. `planning/events.py` builds what the scheduler writes."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, JsonValue, field_validator

from foliot.kinds.checking import checked
from foliot.model.cloud_event import EventForm, read_template
from foliot.model.errors import Problem
from foliot.model.kind import BaseTarget, CliOption


class EventTarget(BaseTarget):
    """An event, written to the outbox in the transaction that fires. `event_data` is its data, or the text
    of a CloudEvent, whose data, type, subject and extensions are kept."""

    display_name: ClassVar = "Event"
    position: ClassVar = 3
    cli_options: ClassVar = (
        CliOption(
            "--event", ("event_topic", "event_type"), "TOPIC TYPE", "Write an event; --arg gives its data."
        ),
    )
    arguments_field: ClassVar = "event_data"
    is_event: ClassVar = True

    kind: Literal["event"] = "event"
    event_topic: str = Field(min_length=1, max_length=126)
    event_type: str = Field(min_length=1, max_length=126)
    event_data: dict[str, JsonValue] | str = Field(default_factory=dict)

    @field_validator("event_topic", "event_type")
    @classmethod
    def _is_one_word(cls, value: str) -> str:
        if any(ord(character) <= 32 or ord(character) == 127 for character in value):
            raise ValueError("must not contain spaces or control characters")
        return value

    @field_validator("event_data")
    @classmethod
    def _is_event(cls, value: dict[str, JsonValue] | str) -> dict[str, JsonValue] | str:
        read_template(value)
        return value

    def describe(self) -> str:
        return f"event {self.event_type} to {self.event_topic}"

    def event(self) -> EventForm:
        return EventForm(self.event_topic, self.event_type, self.event_data)

    def check_arguments(self, args: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG002
        if isinstance(read_template(self.event_data).data, dict):
            return []
        detail = "can't be joined with event_data whose data is no object"
        return [Problem("/args", "no_arguments", detail, "leave them out")]


def event(topic: str, type: str, data: Mapping[str, Any] | str | None = None) -> EventTarget:  # noqa: A002
    """Return a target that writes an event to the outbox in the firing transaction.

    `data` is the event's data, or the text of a whole CloudEvent.
    """
    given = data if isinstance(data, str) else dict(data or {})
    return checked(EventTarget, event_topic=topic, event_type=type, event_data=given)
