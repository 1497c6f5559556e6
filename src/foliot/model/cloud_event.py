"""Reads the `event_data` of a user as a template for CloudEvents: its data and its attributes.

It is either an object, which is the data, or JSON text. The text is a whole CloudEvent 1.0, whose data, type,
subject and extensions are used, or an object that is the data. Foliot sets identity, time and versions when
it fires.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import orjson

SPEC_VERSION = "1.0"
_ATTRIBUTE = re.compile(r"^[a-z0-9]{1,40}\Z")
_OF_FOLIOT = frozenset({"specversion", "id", "time", "host", "nonce", "aggregateversion"})
"""Attributes that Foliot sets for every event, also if the template has them."""
MAX_TYPE_LENGTH = 255
_SECRET = "${secret:"  # noqa: S105 - the form of a reference, not a secret


class EventForm(NamedTuple):
    """What a target says about its events: where they go, and what `read_template` reads."""

    topic: str
    type: str
    data: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class CloudEventTemplate:
    """The parts of an event that do not depend on when it fires."""

    data: Any = None
    data_base64: str | None = None
    attributes: Mapping[str, str | int | bool] = field(default_factory=dict)
    """As the user gave them, without those that Foliot sets."""

    @property
    def type(self) -> str | None:
        return _text(self.attributes.get("type"))

    @property
    def aggregate_type(self) -> str | None:
        return _text(self.attributes.get("aggregatetype"))

    @property
    def user_id(self) -> UUID | None:
        """The user of the event, if the template names one by id; None: it does not."""
        try:
            return UUID(_text(self.attributes.get("user")) or "")
        except ValueError:
            return None


def read_template(event_data: dict[str, Any] | str) -> CloudEventTemplate:
    """Parse `event_data`. Raises a ValueError that says what is wrong with it."""
    if isinstance(event_data, str):
        return _read_text(event_data)
    _refuse_secrets(event_data)
    return CloudEventTemplate(data=event_data)


@lru_cache(maxsize=4_096)
def _read_text(text: str) -> CloudEventTemplate:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ValueError("must be an object, or text that holds a CloudEvent as JSON") from None
    if not isinstance(document, dict):
        raise ValueError("must be an object, or text that holds a CloudEvent as a JSON object")
    _refuse_secrets(document)
    if "specversion" not in document:
        return CloudEventTemplate(data=document)
    if document["specversion"] != SPEC_VERSION:
        raise ValueError(f"holds a CloudEvent of another specversion; right would be {SPEC_VERSION}")
    data, data_base64 = document.pop("data", None), document.pop("data_base64", None)
    if data_base64 is not None and (data is not None or not isinstance(data_base64, str)):
        raise ValueError("holds a CloudEvent whose data_base64 is no text, or stands beside data")
    for name, value in document.items():
        if not _ATTRIBUTE.match(name):
            raise ValueError(f"holds an attribute {name[:60]!r}: names have lower-case letters and digits")
        if not isinstance(value, str | int):
            raise ValueError(f"holds an attribute {name} that is no text, number or truth value")
    kept = {name: value for name, value in document.items() if name not in _OF_FOLIOT}
    for name in ("type", "source", "subject"):
        if name in kept and not _text(kept[name]):
            raise ValueError(f"holds a CloudEvent whose {name} is not a text of one or more characters")
    for name in ("type", "aggregatetype"):
        if len(str(kept.get(name, ""))) > MAX_TYPE_LENGTH:
            raise ValueError(f"holds a CloudEvent whose {name} is longer than {MAX_TYPE_LENGTH} characters")
    return CloudEventTemplate(data=data, data_base64=data_base64, attributes=kept)


def _refuse_secrets(document: dict[str, Any]) -> None:
    if _SECRET in orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS).decode():
        raise ValueError("must not refer to secrets: an event is stored, and read by all its consumers")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
