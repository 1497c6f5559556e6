"""Routes for notification rules and notifications."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, create_model

from foliot.api.access.gate import Caller, GatedRoute, ReservedId, Writer
from foliot.api.api_document import ApiDocument
from foliot.api.examples import ON_CALL_RULE
from foliot.api.http.conditions import IfMatch
from foliot.api.http.json_response import answer, etag_of, no_content
from foliot.api.http.patch import merge
from foliot.api.http.request_body import JsonBody, parse_optional, require_object, takes
from foliot.api.lists import ListOf
from foliot.api.paging import Paged
from foliot.api.routes.executions import Because
from foliot.api.services import API, Services
from foliot.model.errors import InvalidError, Problem
from foliot.model.notification import (
    DeliveryState,
    Notification,
    NotificationRule,
    NotificationRuleSpec,
    NotificationType,
)
from foliot.notifications.notifications_sql import NotificationFilter, Notifications
from foliot.notifications.rules_sql import NotificationRules

RULES = f"{API}/notifications/rules"


class NotificationRuleDocument(NotificationRuleSpec):
    """A rule: its definition, and, read-only, who made it so."""

    model_config = ConfigDict(title="NotificationRule")

    rule_id: UUID
    host_id: UUID
    version: int = Field(description="Grows with every change; the ETag.")
    created_by: str | None = None
    created_ts: datetime
    updated_by: str | None = None
    updated_ts: datetime


class NotificationDocument(ApiDocument):
    """A message, and how far its delivery has come."""

    notification_id: UUID = Field(description="The `webhook-id`: the same however often it is sent.")
    rule_id: UUID
    rule_name: str | None = Field(description="The present name; null once the rule is deleted.")
    schedule_id: UUID | None = Field(description="Null for a test, and where it is about many.")
    type: NotificationType
    status: DeliveryState
    attempts: int
    error: str | None = Field(description="Of the last try that went wrong.")
    due_ts: datetime | None = Field(description="When it is sent, or tried again; null: never more.")
    created_ts: datetime
    ended_ts: datetime | None
    message: dict[str, Any] = Field(description="What a webhook is sent.")


_READ_ONLY = tuple(
    name for name in NotificationRuleDocument.model_fields if name not in NotificationRuleSpec.model_fields
)


def _replacement() -> type[BaseModel]:
    read_only: dict[str, Any] = {
        name: (NotificationRuleDocument.model_fields[name].annotation, None) for name in _READ_ONLY
    }
    doc = "The definition of a rule. Read-only fields may come back as they were read."
    return create_model(
        "NotificationRuleReplacement", __base__=NotificationRuleSpec, __doc__=doc, **read_only
    )


def _patch() -> type[BaseModel]:
    merged = ("match", "to")
    fields: dict[str, Any] = {
        name: (dict[str, Any] | None if name in merged else (info.annotation or Any) | None, None)
        for name, info in NotificationRuleDocument.model_fields.items()
    }
    doc = "Any fields of a rule, each with its new value, or null for its default."
    return create_model("NotificationRulePatch", __config__=ConfigDict(extra="forbid"), __doc__=doc, **fields)


NotificationRuleReplacement = _replacement()
NotificationRulePatch = _patch()
"""Both models are only for the OpenAPI document. They don't parse bodies."""


def _rule_document(rule: NotificationRule) -> dict[str, Any]:
    return {
        **rule.spec.model_dump(mode="json"),
        **{name: getattr(rule, name) for name in _READ_ONLY},
    }


def _notification_document(notification: Notification) -> dict[str, Any]:
    return {name: getattr(notification, name) for name in NotificationDocument.model_fields}


def _definition_of(document: Mapping[str, Any], rule: NotificationRule) -> dict[str, Any]:
    """Return the definition in a document that a client read, edited and sent back. Raises InvalidError."""
    shown = NotificationRuleDocument.model_validate(_rule_document(rule)).model_dump(mode="json")
    changed = [
        Problem(
            f"/{name}", "read_only", "is set by Foliot and can't be changed", "leave it as it was, or out"
        )
        for name in _READ_ONLY
        if name in document and document[name] != shown[name]
    ]
    if changed:
        raise InvalidError(changed)
    return {name: value for name, value in document.items() if name not in _READ_ONLY}


def notification_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=API, tags=["notifications"], route_class=GatedRoute)
    # First, so that `rules` is not taken for a notification id.
    _add_rules(router, services)
    _add_messages(router, services)
    return router


def _add_rules(router: APIRouter, services: Services) -> None:
    rules, commands = NotificationRules(services.database), services.commands.notifications

    @router.get(
        "/notifications/rules",
        summary="List notification rules",
        response_model=ListOf[NotificationRuleDocument],
    )
    async def list_rules(caller: Caller, page: Paged) -> Response:
        """In order of name."""
        rows = await rules.list_all(caller.host_id, limit=page.limit, after_name=page.after_text())
        return page.answer(rows, _rule_document, lambda row: [row.spec.name])

    @router.post(
        "/notifications/rules",
        status_code=201,
        summary="Make a notification rule",
        response_model=NotificationRuleDocument,
        openapi_extra=takes(NotificationRuleSpec, example=ON_CALL_RULE),
    )
    async def make_rule(caller: Caller, author: Writer, body: JsonBody, reserved: ReservedId) -> Response:
        """Only `name`, `on` and `to` are required. A name that is taken is a 409."""
        spec = NotificationRuleSpec.parse(require_object(body))
        rule = await commands.create(caller.host_id, spec, author, rule_id=reserved)
        headers = {"Location": f"{RULES}/{rule.rule_id}", "ETag": etag_of(rule.version)}
        return answer(_rule_document(rule), 201, headers)

    @router.get(
        "/notifications/rules/{rule_id}",
        summary="Read a notification rule",
        response_model=NotificationRuleDocument,
    )
    async def read_rule(rule_id: UUID, caller: Caller) -> Response:
        return _answer_rule(await rules.get(rule_id, caller.host_id))

    @router.put(
        "/notifications/rules/{rule_id}",
        summary="Replace a notification rule",
        response_model=NotificationRuleDocument,
        openapi_extra=takes(NotificationRuleReplacement, example=ON_CALL_RULE),
    )
    async def replace_rule(
        rule_id: UUID, caller: Caller, author: Writer, body: JsonBody, expected: IfMatch
    ) -> Response:
        """What is left out gets its default. Read-only fields may come back as they were read."""
        document = require_object(body)

        def replaced(rule: NotificationRule) -> NotificationRuleSpec:
            return NotificationRuleSpec.parse(_definition_of(document, rule))

        return _answer_rule(
            await commands.edit(rule_id, caller.host_id, replaced, author, expected_version=expected)
        )

    @router.patch(
        "/notifications/rules/{rule_id}",
        summary="Change parts of a notification rule",
        response_model=NotificationRuleDocument,
        openapi_extra=takes(
            NotificationRulePatch, media="application/merge-patch+json", example={"enabled": False}
        ),
    )
    async def patch_rule(
        rule_id: UUID, caller: Caller, author: Writer, body: JsonBody, expected: IfMatch
    ) -> Response:
        """A JSON merge patch (RFC 7396). Muted by `muted_until_ts`, and heard again by null."""
        document = require_object(body)

        def patched(rule: NotificationRule) -> NotificationRuleSpec:
            known = rule.spec.model_dump(mode="json")
            changes = _definition_of(document, rule)
            to = changes.get("to")
            if isinstance(to, Mapping) and to.get("kind", known["to"]["kind"]) != known["to"]["kind"]:
                known["to"] = {}  # another kind: fields of the old kind would be refused
            return NotificationRuleSpec.parse(merge(known, changes))

        return _answer_rule(
            await commands.edit(rule_id, caller.host_id, patched, author, expected_version=expected)
        )

    @router.delete("/notifications/rules/{rule_id}", status_code=204, summary="Delete a notification rule")
    async def delete_rule(rule_id: UUID, caller: Caller, author: Writer, expected: IfMatch) -> Response:
        """With the messages of it that are still to be sent; those that were sent stay listed."""
        await commands.delete(rule_id, caller.host_id, author, expected_version=expected)
        return no_content()

    @router.post(
        "/notifications/rules/{rule_id}/test",
        status_code=202,
        summary="Send a test message",
        response_model=NotificationDocument,
        openapi_extra=takes(Because, is_required=False),
    )
    async def test_rule(
        rule_id: UUID, caller: Caller, author: Writer, reserved: ReservedId, body: JsonBody
    ) -> Response:
        """Also by a rule that is disabled or muted. `Location` tells what became of it."""
        because = author.because(parse_optional(Because, body).reason)
        made = await commands.test(rule_id, caller.host_id, because, notification_id=reserved)
        headers = {"Location": f"{API}/notifications/{made.notification_id}"}
        return answer(_notification_document(made), 202, headers)


def _answer_rule(rule: NotificationRule) -> Response:
    return answer(_rule_document(rule), headers={"ETag": etag_of(rule.version)})


def _add_messages(router: APIRouter, services: Services) -> None:
    notifications, commands = Notifications(services.database), services.commands.notifications

    @router.get("/notifications", summary="List notifications", response_model=ListOf[NotificationDocument])
    async def list_notifications(
        caller: Caller,
        page: Paged,
        status: Annotated[list[DeliveryState] | None, Query()] = None,
        type: Annotated[list[NotificationType] | None, Query()] = None,  # noqa: A002 - its name outside
        rule_id: Annotated[list[UUID] | None, Query()] = None,
        schedule_id: Annotated[list[UUID] | None, Query()] = None,
    ) -> Response:
        """Latest first. A parameter given several times means any of its values."""
        wanted = NotificationFilter(
            host_id=caller.host_id,
            statuses=[each.value for each in status or ()],
            types=[each.value for each in type or ()],
            rule_ids=rule_id or (),
            schedule_ids=schedule_id or (),
        )
        rows = await notifications.page(wanted, after=page.after_id(), limit=page.limit)
        return page.answer(rows, _notification_document, lambda row: [row.notification_id])

    @router.get(
        "/notifications/{notification_id}",
        summary="Read a notification",
        response_model=NotificationDocument,
    )
    async def read_notification(notification_id: UUID, caller: Caller) -> Response:
        return answer(_notification_document(await notifications.get(notification_id, caller.host_id)))

    @router.post(
        "/notifications/{notification_id}/retry",
        status_code=202,
        summary="Send a notification again",
        response_model=NotificationDocument,
        openapi_extra=takes(Because, is_required=False),
    )
    async def retry_notification(
        notification_id: UUID, caller: Caller, author: Writer, body: JsonBody
    ) -> Response:
        """One that was given up, with a fresh budget of tries; any other is a 409."""
        because = author.because(parse_optional(Because, body).reason)
        made = await commands.retry(notification_id, caller.host_id, because)
        return answer(_notification_document(made), 202)
