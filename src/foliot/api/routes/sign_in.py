"""Routes to sign a browser in and out. Its session ends when the key that created it is gone."""

from collections.abc import Sequence
from datetime import datetime

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import Field

from foliot.access.sessions import SESSION_LIFETIME_S, MadeSession, Sessions
from foliot.api.access.credentials import SESSION_COOKIE, Authenticator, refuses_cross_site
from foliot.api.access.gate import Caller, Gate, GatedRoute, Writer, address_of
from foliot.api.access.guess_limits import names_of
from foliot.api.api_document import ApiDocument
from foliot.api.http.error_responses import request_id_of
from foliot.api.http.json_response import answer, no_content
from foliot.api.http.request_body import Form, JsonBody, parse, takes
from foliot.api.services import API, Services
from foliot.model.errors import ForbiddenError
from foliot.planning.change import Author


class SignIn(Form):
    """The key to sign in with."""

    key: str = Field(min_length=1, max_length=1000)


class SignInLinkDocument(ApiDocument):
    """A link that signs one browser in."""

    token: str = Field(description="Goes into the link; it can't be shown again.")
    expires_ts: datetime


def sign_in_routes(
    services: Services,
    authenticator: Authenticator,
    own_names: Sequence[str] = (),
    *,
    is_public_secure: bool = False,
) -> APIRouter:
    """Return the sign-in routes.

    `own_names` are the host names of FOLIOT_PUBLIC_URL, `is_public_secure` says whether that URL uses HTTPS.
    If it does, the cookie for these names is for HTTPS only.
    """
    router = APIRouter(tags=["access"], route_class=GatedRoute)
    sessions = Sessions(services.database)

    def is_secure(request: Request) -> bool:
        # A proxy that terminates TLS may not tell us so.
        return is_public_secure and request.headers.get("host") in own_names

    @router.get(
        "/sign-in",
        status_code=303,
        summary="Sign in by a one-time link",
        response_class=RedirectResponse,
        responses={303: {"description": "To the UI"}},
    )
    async def sign_in_by_link(request: Request, token: str = "") -> Response:
        """Sets the cookie and leads to the UI. A link works once; a spent one leads to the sign-in page."""
        if not token:
            return RedirectResponse("/", status_code=303)
        made = await sessions.use_link(token, _stranger(request))
        if made is None:
            request.state.is_sign_in_refused = True
            return RedirectResponse("/?link=spent", status_code=303)
        response = RedirectResponse("/", status_code=303)
        return _with_cookie(request, made, response, is_secure=is_secure(request))

    @router.post("/sign-in", status_code=204, summary="Sign in by a key", openapi_extra=takes(SignIn))
    async def sign_in_by_key(request: Request, body: JsonBody) -> Response:
        """For browsers: sets the cookie. Programs send the key with each request instead."""
        host = request.headers.get("host")
        if refuses_cross_site(request.method, request.headers, host, *own_names):
            raise ForbiddenError("the request came from another site")
        key = parse(SignIn, body).key
        guessed: list[str] = request.state.guessed_names
        guessed += names_of(guessed[0], key)[1:]
        principal = await authenticator.authenticate(f"Bearer {key}", None)
        gate: Gate = request.app.state.gate
        await gate.require_sign_in_rate(principal.credential)
        made = await sessions.make_session(authenticator.holder_of(principal), _stranger(request))
        return _with_cookie(request, made, no_content(), is_secure=is_secure(request))

    @router.post(
        f"{API}/sign-in-links",
        status_code=201,
        summary="Make a sign-in link for the operator",
        response_model=SignInLinkDocument,
    )
    async def make_link(caller: Caller, author: Writer) -> Response:
        """For a browser: open `/sign-in?token=` with this token. It works once, for 15 minutes.

        Takes the key itself: a browser that is signed in makes no links.
        """
        made = await sessions.make_link(authenticator.holder_of(caller), author)
        return answer({"token": made.token, "expires_ts": made.expires_ts}, 201)

    @router.post("/sign-out", status_code=204, summary="Sign out")
    async def sign_out(request: Request, author: Writer) -> Response:
        cookie = request.cookies.get(SESSION_COOKIE)
        if cookie is not None:
            await sessions.end(cookie, author)
        response = no_content()
        response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="lax")
        return response

    return router


def _stranger(request: Request) -> Author:
    """Return the author of a sign-in. Only its address is known yet; the session has the name."""
    return Author(None, request_id=request_id_of(request), address=address_of(request))


def _with_cookie(request: Request, made: MadeSession, response: Response, *, is_secure: bool) -> Response:
    response.set_cookie(
        SESSION_COOKIE,
        made.token,
        max_age=int(SESSION_LIFETIME_S),
        path="/",
        httponly=True,
        # Not "strict": a link opened from a terminal or a chat must lead to a signed-in page.
        samesite="lax",
        secure=is_secure or request.url.scheme == "https",
    )
    return response
