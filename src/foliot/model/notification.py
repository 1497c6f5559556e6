"""A notification rule: whom to notify when schedules fail, recover, do not run, or are late.

Structure only. The address guard checks whether its address is allowed, when a rule is saved and again when
a message is sent.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import Field, StrictBool, ValidationError, field_validator, model_validator

from foliot.model.document import Document
from foliot.model.errors import InvalidError
from foliot.model.http_url import require_http_url
from foliot.model.moment import Moment
from foliot.model.schedule import Label, problems_of

MAX_NAMED = 500
LONGEST_S = 366 * 86400
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_REFERENCE = re.compile(r"^\$\{secret:[A-Za-z_][A-Za-z0-9_.-]{0,125}\}\Z")


class OnFailure(Document):
    """An execution has failed for good: once until the schedule succeeds again, or every time."""

    kind: Literal["failure"] = "failure"
    every: StrictBool = False


class OnRecovery(Document):
    """The first success after what this rule tells of; in a rule of its own, after any failure."""

    kind: Literal["recovery"] = "recovery"


class OnFailuresInARow(Document):
    """So many executions have failed one after the other: once until the schedule succeeds again."""

    kind: Literal["failures_in_a_row"] = "failures_in_a_row"
    count: int = Field(ge=2, le=100)


class OnDidNotRun(Document):
    """There was no success for so long, or none by so long after a due time."""

    kind: Literal["did_not_run"] = "did_not_run"
    within_seconds: float | None = Field(default=None, ge=1, le=LONGEST_S)
    grace_seconds: float | None = Field(default=None, ge=0, le=LONGEST_S)

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.within_seconds is None) == (self.grace_seconds is None):
            raise ValueError("give either within_seconds, or grace_seconds after a due time")
        return self


class OnSlaMiss(Document):
    """An execution waits longer than its priority promises, or was started too late."""

    kind: Literal["sla_miss"] = "sla_miss"


Condition = Annotated[
    OnFailure | OnRecovery | OnFailuresInARow | OnDidNotRun | OnSlaMiss, Field(discriminator="kind")
]


class RuleMatch(Document):
    """Which schedules a rule is about: those of which all that is given holds. Left empty, all of them."""

    schedules: tuple[Annotated[str, Field(min_length=1, max_length=126)], ...] = Field(
        default=(), max_length=MAX_NAMED
    )
    """Any of these, by name or id."""
    labels: dict[Annotated[str, Field(min_length=1, max_length=100)], Label] = Field(
        default_factory=dict, max_length=50
    )
    """All of these."""

    @field_validator("schedules")
    @classmethod
    def _ids_as_they_are_written(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(each.lower() if _ID.fullmatch(each) else each for each in value)


class _Address(Document):
    url: str = Field(min_length=1, max_length=4000)
    """`${secret:name}` may stand in it, behind the host."""

    _is_plain = field_validator("url")(require_http_url)


class ToWebhook(_Address):
    """A POST as Standard Webhooks has it, signed by a secret that both sides know."""

    kind: Literal["webhook"] = "webhook"
    secret: str = Field(max_length=200, examples=["${secret:webhook_key}"])
    """A reference to a secret whose value is `whsec_` and a key in base64."""

    @field_validator("secret")
    @classmethod
    def _is_reference(cls, value: str) -> str:
        if not _REFERENCE.match(value):
            raise ValueError("must name a stored secret, as ${secret:webhook_key}; never the value itself")
        return value


class ToSlack(_Address):
    """An incoming webhook of Slack, or of what understands the same."""

    kind: Literal["slack"] = "slack"


Address = Annotated[ToWebhook | ToSlack, Field(discriminator="kind")]


class NotificationRuleSpec(Document):
    """The definition of a rule. Only name, on and to are required."""

    name: str = Field(min_length=1, max_length=126)
    description: str = Field(default="", max_length=2000)
    match: RuleMatch = RuleMatch()
    # The minimum length is checked below: here it would be reported for every wrong condition too.
    on: tuple[Condition, ...] = Field(max_length=5, json_schema_extra={"minItems": 1})
    to: Address
    enabled: StrictBool = True
    muted_until_ts: Moment | None = None
    """No notification is sent for what happens before this time."""

    @field_validator("name")
    @classmethod
    def _trimmed(cls, value: str) -> str:
        if value != value.strip() or not value.isprintable():
            raise ValueError("must be printable text without spaces around it")
        return value

    @field_validator("muted_until_ts", mode="before")
    @classmethod
    def _is_written_out(cls, value: Any) -> Any:
        # Pydantic would read a number as seconds since 1970.
        if value is not None and not isinstance(value, datetime) and not _DATE.match(str(value)):
            raise ValueError("must be a time with its offset, as 2026-11-20T08:00:00Z")
        return value

    @field_validator("description", "match", "to")
    @classmethod
    def _can_be_stored(cls, value: Any) -> Any:
        for text in _texts(value.model_dump() if isinstance(value, Document) else value):
            if any(each == "\0" or "\ud800" <= each <= "\udfff" for each in text):
                raise ValueError("must be whole characters, without NUL")
        return value

    @field_validator("on")
    @classmethod
    def _once_each(cls, value: tuple[Condition, ...]) -> tuple[Condition, ...]:
        if not value:
            raise ValueError("must name at least one kind")
        kinds = [each.kind for each in value]
        if len(set(kinds)) < len(kinds):
            raise ValueError("must name each kind once; make another rule for more")
        return value

    @classmethod
    def parse(cls, document: Any) -> "NotificationRuleSpec":
        """Parse what a user wrote. Raises an InvalidError that names each wrong field."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            found = problems_of(error)
            raise InvalidError([replace(each, pointer=_written(each.pointer)) for each in found]) from None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts([name, item])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


_CONDITIONS = "failure|recovery|failures_in_a_row|did_not_run|sla_miss"
_CHOSEN = re.compile(rf"^(?:(/on/\d+)/(?:{_CONDITIONS})|(/to)/(?:webhook|slack))(?=/|$)")


def _written(pointer: str) -> str:
    """Remove the chosen kind from the pointer: Pydantic adds it for a discriminated union."""
    return _CHOSEN.sub(lambda found: found[1] or found[2], pointer)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRule:
    """A stored rule."""

    rule_id: UUID
    host_id: UUID
    spec: NotificationRuleSpec
    version: int = 1
    """Grows with every change; used as the ETag."""
    effective_ts: datetime
    """When it was created, or enabled or unmuted again. What happened before is not reported."""
    watching_ts: datetime | None = None
    """When its time limit or its set of schedules last changed; None: never since then."""
    created_by: str | None = None
    created_ts: datetime
    updated_by: str | None = None
    updated_ts: datetime

    def is_muted(self, now: datetime) -> bool:
        until_ts = self.spec.muted_until_ts
        return not self.spec.enabled or (until_ts is not None and now < until_ts)

    @property
    def counts_from(self) -> datetime:
        """What happened before this is not reported: the rule did not exist, or was muted."""
        until_ts = self.spec.muted_until_ts
        return self.effective_ts if until_ts is None else max(self.effective_ts, until_ts)

    @property
    def watches_from(self) -> datetime:
        """The earliest time from which a missing success counts."""
        counts_from = self.counts_from
        return counts_from if self.watching_ts is None else max(counts_from, self.watching_ts)

    def is_about(self, schedule_id: UUID, name: str, labels: Mapping[str, str]) -> bool:
        match = self.spec.match
        if match.schedules and name not in match.schedules and str(schedule_id) not in match.schedules:
            return False
        return all(labels.get(label) == value for label, value in match.labels.items())


class NotificationType(StrEnum):
    """What a message says has happened."""

    FAILED = "schedule.failed"
    FAILING = "schedule.failing"
    RECOVERED = "schedule.recovered"
    DID_NOT_RUN = "schedule.did_not_run"
    SLA_MISSED = "schedule.sla_missed"
    GATHERED = "schedules.gathered"
    """One message about many schedules, if a rule has more incidents than it reports one by one."""
    TEST = "test"


class DeliveryState(StrEnum):
    """How a message stands."""

    PENDING = "pending"
    """To be sent, or to be retried."""
    DELIVERED = "delivered"
    DEAD = "dead"
    """Given up: refused permanently, or out of retries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A message and the state of its delivery."""

    notification_id: UUID
    host_id: UUID
    rule_id: UUID
    rule_name: str | None
    """The rule's current name; None: it was deleted."""
    schedule_id: UUID | None
    type: NotificationType
    status: DeliveryState
    attempts: int
    error: str | None
    """Error of the last failed try."""
    due_ts: datetime | None
    """When it is sent or retried; None: never."""
    created_ts: datetime
    ended_ts: datetime | None
    message: dict[str, Any]
