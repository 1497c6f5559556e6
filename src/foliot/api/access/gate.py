"""The gate in front of every route: authentication, rate limits, authorisation and idempotency.

All checks are in one place, so that no route can forget one. They run in this order:

1. Look up the route in `access_table.py`. A route without an entry is refused.
2. Check the credential. Failures count by address and key; guessing is slowed down (`guess_limits.py`).
3. Check the rate of the credential.
4. Check the role. For browsers, also check the origin of the request.
5. Refuse query parameters that the route does not have.
6. For an `Idempotency-Key` that was used before, return the stored response.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from foliot.access.principal import CredentialKind, Principal, Role
from foliot.api.access.access_table import ACCESS, Access, Home, Open
from foliot.api.access.credentials import SESSION_COOKIE, Authenticator, is_csrf_valid, refuses_cross_site
from foliot.api.access.guess_limits import FailedSignInError, GuessLimit, names_of
from foliot.api.access.idempotency_keys import Idempotency
from foliot.api.access.rate_limits import RateKind, RateLimiter, name_of_address
from foliot.api.http.error_responses import request_id_of
from foliot.api.http.paths import path_of
from foliot.api.replica_reads import Reads
from foliot.model.errors import (
    ForbiddenError,
    OverloadedError,
    Problem,
    UnauthenticatedError,
    UnknownParameterError,
)
from foliot.model.event import Observer
from foliot.model.execution import TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.instance_events import CredentialRefused
from foliot.model.schedule import ManagedBy
from foliot.model.trace import parse_traceparent
from foliot.planning.change import Author

CSRF_HEADER = "X-CSRF-Token"
IDEMPOTENCY_HEADER = "Idempotency-Key"
REASON_HEADER = "X-Foliot-Reason"
TRACE_HEADER = "traceparent"
MAX_REASON = 1000
MAX_ADDRESS = 64

_ME = "/api/v1/me"
CHANGE_NOTHING = frozenset({"/api/v1/schedules/preview"})
"""POST routes that only read. Repeating them is safe, so their Idempotency-Key is ignored."""

Handle = Callable[[Request], Awaitable[Response]]


class Gate:
    def __init__(
        self,
        authenticator: Authenticator,
        limiter: RateLimiter,
        idempotency: Idempotency,
        observer: Observer,
        is_running: Callable[[], bool],
        own_names: Sequence[str] = (),
        reads: Reads | None = None,
    ) -> None:
        """`own_names` are host names of this server in addition to the one in the request's Host header."""
        self._is_running = is_running
        self._observer = observer
        self._own_names = tuple(own_names)
        self._authenticator = authenticator
        self._limiter = limiter
        self._guesses = GuessLimit(limiter)
        self._idempotency = idempotency
        self.reads = reads or Reads(None)

    async def admit(
        self, request: Request, needed: Access, known: frozenset[str], handle: Handle
    ) -> Response:
        if needed is Open.PROBE:
            return await handle(request)
        if not self._is_running():
            raise OverloadedError("the instance is starting or stopping; try again in a moment")
        if needed is Open.AGENT:
            return await self._admit_agent(request, known, handle)
        if needed is Open.ANYBODY:
            return await self._admit_anybody(request, handle)
        principal = await self._recognise(request)
        request.state.principal = principal
        # Before the checks below, so that requests which they refuse count too.
        await self._limiter.require(principal.credential, RateKind.CREDENTIAL)
        _authorise(principal, needed)
        if principal.kind is CredentialKind.SESSION:
            _require_own_page(request, self._own_names)
        _refuse_unknown(request, known)
        key = request.headers.get(IDEMPOTENCY_HEADER)
        if request.method != "POST" or key is None or path_of(request.scope) in CHANGE_NOTHING:
            return await handle(request)

        async def handle_once(resource_id: UUID) -> Response:
            request.state.resource_id = resource_id
            return await handle(request)

        return await self._idempotency.run(
            principal.credential,
            path_of(request.scope),
            key,
            await request.body(),
            handle_once,
            keeps_body=not path_of(request.scope).endswith(("/keys", "/sign-in-links")),
        )

    async def _admit_anybody(self, request: Request, handle: Handle) -> Response:
        """Admit a request to a public route. Sign-in routes check the key or link themselves."""
        spent: list[Response] = []

        async def sign_in() -> Response:
            response = await handle(request)
            if getattr(request.state, "is_sign_in_refused", False):
                spent.append(response)
                raise FailedSignInError
            return response

        # The route adds the key id, because the key is in the body.
        request.state.guessed_names = names = [name_of_address(address_of(request))]
        token = request.query_params.get("token") if request.method == "GET" else None
        try:
            return await self._guesses.check(names, token or None, sign_in)
        except FailedSignInError:
            return spent[0]

    async def _admit_agent(self, request: Request, known: frozenset[str], handle: Handle) -> Response:
        """Admit a request of an agent. The route itself checks the token."""
        _refuse_unknown(request, known)
        token = request.headers.get("x-foliot-token") or request.headers.get("authorization")
        name = name_of_address(address_of(request))
        return await self._guesses.check((name,), token, lambda: handle(request), is_unguessable=True)

    async def require_sign_in_rate(self, credential: str) -> None:
        """Limit the sign-ins of a credential, because each writes rows. Raises RateLimitedError."""
        await self._limiter.require(f"sign-in:{credential}", RateKind.ANONYMOUS)

    async def _recognise(self, request: Request) -> Principal:
        authorization = request.headers.get("authorization")
        cookie = request.cookies.get(SESSION_COOKIE)
        name = name_of_address(address_of(request))

        async def authenticate() -> Principal:
            try:
                return await self._authenticator.authenticate(authorization, cookie)
            except UnauthenticatedError as error:
                refused = CredentialRefused(error.why, address_of(request), request_id_of(request))
                self._observer.notify(refused)
                raise

        if authorization is None and cookie is None:
            # Without a credential this is not a guess. The UI calls `me` to find out whether to sign in. This
            # must work however many callers share the address, so `me` has no limit.
            if path_of(request.scope) != _ME:
                await self._limiter.require(name, RateKind.ANONYMOUS)
            return await authenticate()
        credential = authorization or cookie
        return await self._guesses.check(names_of(name, credential), credential, authenticate)


_NOT_READ = frozenset({Open.PROBE, Open.ANYBODY, Open.AGENT})
"""Access rules without a principal. Their routes don't use `Reads`."""


class GatedRoute(APIRoute):
    """A route behind the gate. All routers of the API use `route_class=GatedRoute`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = frozenset(_parameters_of(self.dependant))
        path = self.path_format

        async def gated(request: Request) -> Response:
            needed = ACCESS.get((request.method, path))
            if needed is None:
                raise ForbiddenError(f"{request.method} {path} is open to nobody")
            gate: Gate = request.app.state.gate
            if request.method not in ("GET", "HEAD") or needed in _NOT_READ:
                return await gate.admit(request, needed, known, handle)
            return await gate.reads.answer(
                path, lambda through: gate.admit(request, needed, known, through), handle
            )

        return gated


def _parameters_of(dependant: Dependant) -> Iterator[str]:
    """Yield the query parameters of a route and of its dependencies."""
    yield from (field.alias for field in dependant.query_params)
    for each in dependant.dependencies:
        yield from _parameters_of(each)


def _authorise(principal: Principal, needed: Access) -> None:
    if needed is Open.KEY_HOLDER and not principal.is_operator:
        raise ForbiddenError("this takes the operator's own key, FOLIOT_ADMIN_KEY")
    if isinstance(needed, Home) and principal.host_id != DEFAULT_HOST_ID:
        raise ForbiddenError("this concerns all hosts: it takes a credential of the operator's host")
    role = needed.role if isinstance(needed, Home) else needed
    if isinstance(role, Role) and not principal.may(role):
        raise ForbiddenError(f"this takes the role {role.value}; this credential has {principal.role.value}")


def _require_own_page(request: Request, own_names: Sequence[str]) -> None:
    """Refuse changes that another site's page requests, because browsers send the cookie along (CSRF)."""
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return
    host = request.headers.get("host", "")
    if refuses_cross_site(request.method, request.headers, host, *own_names):
        raise ForbiddenError("the request came from another site")
    if not is_csrf_valid(request.cookies.get(SESSION_COOKIE, ""), request.headers.get(CSRF_HEADER, "")):
        raise ForbiddenError(f"a signed-in browser sends {CSRF_HEADER}, which GET /api/v1/me tells")


def _refuse_unknown(request: Request, known: frozenset[str]) -> None:
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        hint = f"one of: {', '.join(sorted(known))}" if known else "leave it out"
        raise UnknownParameterError(
            [Problem(f"/{name}", "unknown_parameter", "is not a parameter here", hint) for name in unknown]
        )


def address_of(request: Request) -> str:
    return request.client.host[:MAX_ADDRESS] if request.client is not None else "unknown"


# --- dependencies of routes, for requests that the gate has admitted ----------------------------------


def caller_of(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


async def _caller(request: Request) -> Principal:
    return caller_of(request)


Caller = Annotated[Principal, Depends(_caller)]


async def _author(request: Request) -> Author:
    """Return the author of a change, for the version history and the audit."""
    principal = caller_of(request)
    reason = request.headers.get(REASON_HEADER)
    return Author(
        principal.name,
        reason[:MAX_REASON] if reason else None,
        credential=principal.credential,
        request_id=request_id_of(request),
        address=address_of(request),
        trace_context=_trace_context_of(request),
    )


def _trace_context_of(request: Request) -> str | None:
    """Return the trace context, parsed and formatted again, so that no arbitrary text is stored."""
    given = request.headers.getlist(TRACE_HEADER)
    # W3C Trace Context: if there are several headers, ignore all of them.
    context = parse_traceparent(given[0]) if len(given) == 1 else None
    return None if context is None else str(context)


Writer = Annotated[Author, Depends(_author)]


async def _reserved_id(request: Request) -> UUID | None:
    """Return the id for the new resource. None: the request has no Idempotency-Key."""
    return getattr(request.state, "resource_id", None)


ReservedId = Annotated[UUID | None, Depends(_reserved_id)]


def managed_by_of(principal: Principal) -> ManagedBy:
    return ManagedBy.UI if principal.kind is CredentialKind.SESSION else ManagedBy.API


def triggered_by_of(principal: Principal) -> TriggeredBy:
    return TriggeredBy.MANUAL if principal.kind is CredentialKind.SESSION else TriggeredBy.API
