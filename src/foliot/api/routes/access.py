"""Routes for access: the caller's identity, API keys, hosts, and the audit."""

from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from foliot.access.audit import Audit, AuditFilter, AuditRecord
from foliot.access.hosts import HostRecord, Hosts
from foliot.access.keys import KEY_ID_LENGTH
from foliot.access.keys_sql import ApiKeys, KeyRecord
from foliot.access.principal import CredentialKind, Role
from foliot.api.access.credentials import SESSION_COOKIE, csrf_token
from foliot.api.access.gate import Caller, GatedRoute, ReservedId, Writer
from foliot.api.api_document import ApiDocument
from foliot.api.http.json_response import answer, no_content
from foliot.api.http.request_body import Form, JsonBody, parse, takes
from foliot.api.lists import ListOf
from foliot.api.paging import Paged
from foliot.api.services import API, Services
from foliot.model.errors import ForbiddenError
from foliot.model.moment import Moment


class MeDocument(ApiDocument):
    """Who a credential belongs to, and what it allows."""

    name: str
    role: Role
    host_id: UUID
    credential: str = Field(description="Names the credential, without being one.")
    kind: CredentialKind
    is_operator: bool = Field(description="Whether it may manage hosts.")
    csrf_token: str | None = Field(
        default=None,
        description="For a signed-in browser: the value of X-CSRF-Token when it changes something.",
    )


class NewKey(Form):
    """A key to make."""

    name: str = Field(min_length=1, max_length=126, examples=["ci"])
    role: Role
    expires_ts: Moment | None = Field(default=None, description="When it stops working by itself.")
    host_id: UUID | None = Field(
        default=None, description="Another host's than the caller's: takes the operator's own key."
    )


class KeyDocument(ApiDocument):
    """An API key. The key itself is shown once, when it is created."""

    key_id: str
    host_id: UUID
    name: str
    role: Role
    created_by: str | None
    created_ts: datetime
    expires_ts: datetime | None
    revoked_ts: datetime | None
    last_used_ts: datetime | None


class MadeKeyDocument(KeyDocument):
    """A key that was just made."""

    model_config = ConfigDict(title="MadeKey")

    key: str = Field(description="The key: keep it, it can't be shown again.")


class NewHost(Form):
    """A host to make."""

    name: str = Field(min_length=1, max_length=126, examples=["acme"])


class HostDocument(ApiDocument):
    """A host: a tenant, isolated from the others in everything."""

    host_id: UUID
    name: str
    created_ts: datetime


class AuditDocument(BaseModel):
    """Something that was done: who, what, before and after, why."""

    model_config = ConfigDict(title="AuditRecord")

    audit_id: UUID
    audit_ts: datetime
    actor: str | None
    credential: str | None
    action: str = Field(examples=["schedule.edited"])
    resource_type: str
    resource_id: str
    before: Any = Field(description="What was changed, as it was.")
    after: Any = Field(description="What was changed, as it became.")
    reason: str | None
    request_id: str | None
    address: str | None


def _key_document(key: KeyRecord) -> dict[str, Any]:
    return {each.name: getattr(key, each.name) for each in fields(key)}


def _host_document(host: HostRecord) -> dict[str, Any]:
    return {"host_id": host.host_id, "name": host.name, "created_ts": host.created_ts}


def _audit_document(record: AuditRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in AuditDocument.model_fields}


def access_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=API, tags=["access"], route_class=GatedRoute)
    _add_keys(router, services)
    _add_hosts(router, services)

    @router.get("/me", summary="Who I am", response_model=MeDocument)
    async def me(request: Request, caller: Caller) -> Response:
        document = {
            "name": caller.name,
            "role": caller.role,
            "host_id": caller.host_id,
            "credential": caller.credential,
            "kind": caller.kind,
            "is_operator": caller.is_operator,
            "csrf_token": None,
        }
        if caller.kind is CredentialKind.SESSION:
            document["csrf_token"] = csrf_token(request.cookies[SESSION_COOKIE])
        return answer(document)

    @router.get("/audit", summary="List what was done", response_model=ListOf[AuditDocument])
    async def list_audit(
        caller: Caller,
        page: Paged,
        action: Annotated[list[str] | None, Query(max_length=50)] = None,
        actor: Annotated[list[str] | None, Query(max_length=50)] = None,
        resource_type: Annotated[list[str] | None, Query(max_length=50)] = None,
        resource_id: Annotated[list[str] | None, Query(max_length=50)] = None,
        from_ts: Moment | None = None,
        to_ts: Moment | None = None,
    ) -> Response:
        """Latest first. Kept for FOLIOT_RETENTION_DAYS."""
        wanted = AuditFilter(
            host_id=caller.host_id,
            actions=tuple(action or ()),
            actors=tuple(actor or ()),
            resource_types=tuple(resource_type or ()),
            resource_ids=tuple(resource_id or ()),
            from_ts=from_ts,
            to_ts=to_ts,
        )
        rows = await Audit(services.database).page(wanted, after=page.after_id(), limit=page.limit)
        return page.answer(rows, _audit_document, lambda row: [row.audit_id])

    return router


def _add_keys(router: APIRouter, services: Services) -> None:
    keys = ApiKeys(services.database)

    @router.get("/keys", summary="List keys", response_model=ListOf[KeyDocument])
    async def list_keys(caller: Caller, page: Paged) -> Response:
        """Also those that are revoked or have expired; never the keys themselves."""
        rows = await keys.page(caller.host_id, after=page.after_text(), limit=page.limit)
        return page.answer(rows, _key_document, lambda row: [row.key_id])

    @router.post(
        "/keys",
        status_code=201,
        summary="Make a key",
        response_model=MadeKeyDocument,
        responses={404: {"description": "There is no such host"}},
        openapi_extra=takes(NewKey),
    )
    async def make_key(caller: Caller, author: Writer, body: JsonBody, reserved: ReservedId) -> Response:
        """The answer is the only place where the key is ever shown."""
        asked = parse(NewKey, body)
        host_id = asked.host_id or caller.host_id
        if host_id != caller.host_id and not caller.is_operator:
            raise ForbiddenError("a key for another host takes the operator's own key, FOLIOT_ADMIN_KEY")
        key_id = None if reserved is None else reserved.hex[-KEY_ID_LENGTH:]
        made = await keys.create(host_id, asked.name, asked.role, asked.expires_ts, author, key_id=key_id)
        location = {"Location": f"{API}/keys/{made.record.key_id}"}
        return answer({**_key_document(made.record), "key": made.text}, 201, location)

    @router.delete("/keys/{key_id}", status_code=204, summary="Revoke a key")
    async def revoke_key(key_id: str, caller: Caller, author: Writer) -> Response:
        """At once, with every browser that is signed in by it."""
        await keys.revoke(key_id, caller.host_id, author)
        return no_content()


def _add_hosts(router: APIRouter, services: Services) -> None:
    hosts = Hosts(services.database)

    @router.get("/hosts", summary="List hosts", response_model=ListOf[HostDocument])
    async def list_hosts(page: Paged) -> Response:
        rows = await hosts.page(after_name=page.after_text(), limit=page.limit)
        return page.answer(rows, _host_document, lambda row: [row.name])

    @router.post(
        "/hosts",
        status_code=201,
        summary="Make a host",
        response_model=HostDocument,
        openapi_extra=takes(NewHost),
    )
    async def make_host(author: Writer, body: JsonBody, reserved: ReservedId) -> Response:
        made = await hosts.create(parse(NewHost, body).name, author, host_id=reserved)
        return answer(_host_document(made), 201, {"Location": f"{API}/hosts"})
