"""Authentication: the only place where a credential becomes a principal.

`Authorization: Bearer` contains the operator's key, an API key or a token, distinguished by their form. A
browser that is signed in sends its session cookie. If both are present, only the Bearer counts: if it is
wrong, the request is refused, even with a valid cookie.
"""

import hmac
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit
from uuid import UUID

from foliot.access.hosts import Hosts
from foliot.access.jwt_tokens import TokenVerifier
from foliot.access.keys import ApiKey, OperatorKey, hash_of, is_hash_of
from foliot.access.keys_sql import ApiKeys
from foliot.access.principal import CredentialKind, Principal, Role
from foliot.access.sessions import Holder, Sessions
from foliot.model.errors import FoliotError, ForbiddenError, UnauthenticatedError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.timing.clock import Clock

SESSION_COOKIE = "foliot_session"
MAX_LENGTH = 8192 + len("Bearer ")
HOST_HOLDS_S = 60.0
MAX_HOSTS_KEPT = 10_000

_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_NO_HASH = "0" * 64


class NotSignableError(ForbiddenError):
    """A session can be created only with a key. Other credentials may end before the session."""

    def __init__(self) -> None:
        super().__init__("only an API key or the operator's key signs a browser in")


class Authenticator:
    """Checks credentials and returns their principals. Raises UnauthenticatedError if one is not valid."""

    def __init__(
        self,
        *,
        operator_key: str | None,
        keys: ApiKeys,
        sessions: Sessions,
        hosts: Hosts,
        verifier: TokenVerifier | None,
        clock: Clock,
    ) -> None:
        """Raises ValueError if the operator's key is not usable. The message does not contain it."""
        self._operator_key = None if operator_key is None else OperatorKey(operator_key)
        self._keys = keys
        self._sessions = sessions
        self._hosts = hosts
        self._verifier = verifier
        self._clock = clock
        self._host_seen_at: dict[UUID, float] = {}

    async def authenticate(self, authorization: str | None, cookie: str | None) -> Principal:
        """Return the principal of a request. Raises UnauthenticatedError.

        `authorization` is the whole header, `cookie` the value of SESSION_COOKIE.
        """
        if authorization is not None:
            return await self._by_bearer(_bearer_of(authorization))
        if cookie is not None:
            return await self._by_session(cookie)
        raise UnauthenticatedError("nothing was shown")

    def holder_of(self, principal: Principal) -> Holder:
        """Return the owner of a new session or link, which ends with the key. Raises NotSignableError."""
        if principal.kind is CredentialKind.KEY:
            key_id = principal.credential.removeprefix("key:")
        elif principal.kind is CredentialKind.OPERATOR and self._operator_key is not None:
            key_id = self._operator_key.fingerprint
        else:
            # A session from a token would outlive the token. One from a session would outlive the key.
            raise NotSignableError
        return Holder(
            host_id=principal.host_id,
            key_id=key_id,
            name=principal.name,
            role=principal.role,
            is_operator=principal.is_operator,
        )

    async def _by_bearer(self, text: str) -> Principal:
        if self._operator_key is not None and self._operator_key.is_it(text):
            return operator_principal()
        key = ApiKey.parse(text)
        if key is not None:
            return await self._by_key(key)
        if self._verifier is not None:
            return await self._by_token(self._verifier, text)
        raise UnauthenticatedError("neither a key nor, since tokens are off, a token")

    async def _by_key(self, key: ApiKey) -> Principal:
        found = await self._keys.find(key.key_id)
        is_right = is_hash_of(_NO_HASH if found is None else found.secret_hash, key.secret)
        if found is None or not is_right:
            raise UnauthenticatedError("unknown key")
        if not found.is_live:
            raise UnauthenticatedError("revoked or expired key")
        if found.is_touch_due:
            # A failure to store the time of use is no reason to refuse the request.
            with suppress(FoliotError):
                await self._keys.touch(key.key_id)
        return Principal(
            credential=f"key:{key.key_id}",
            kind=CredentialKind.KEY,
            name=found.record.name,
            role=found.record.role,
            host_id=found.record.host_id,
        )

    async def _by_token(self, verifier: TokenVerifier, text: str) -> Principal:
        principal = await verifier.verify(text)
        now = self._clock.monotonic()
        seen_at = self._host_seen_at.get(principal.host_id)
        if seen_at is None or now - seen_at >= HOST_HOLDS_S:
            if not await self._hosts.exists(principal.host_id):
                raise UnauthenticatedError("its host does not exist")
            if len(self._host_seen_at) >= MAX_HOSTS_KEPT:
                self._host_seen_at.clear()
            self._host_seen_at[principal.host_id] = now
        return principal

    async def _by_session(self, token: str) -> Principal:
        found = await self._sessions.find(token)
        if found is None:
            raise UnauthenticatedError("no such session, or over")
        holder = found.holder
        if holder.is_operator and not self._is_of_operator(holder):
            raise UnauthenticatedError("a session of another operator's key")
        return Principal(
            credential=found.credential,
            kind=CredentialKind.SESSION,
            name=holder.name,
            role=holder.role,
            host_id=holder.host_id,
            is_operator=holder.is_operator,
        )

    def _is_of_operator(self, holder: Holder) -> bool:
        return self._operator_key is not None and holder.key_id == self._operator_key.fingerprint


def operator_principal() -> Principal:
    """Return the principal for FOLIOT_ADMIN_KEY."""
    return Principal(
        credential="operator",
        kind=CredentialKind.OPERATOR,
        name="operator",
        role=Role.ADMIN,
        host_id=DEFAULT_HOST_ID,
        is_operator=True,
    )


def _bearer_of(authorization: str) -> str:
    # Check the length first, so that nobody can make us process a very long header.
    if len(authorization) > MAX_LENGTH:
        raise UnauthenticatedError("too long")
    scheme, _, text = authorization.partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise UnauthenticatedError("no Bearer")
    return text.strip(" ")


# --- cross-site requests --------------------------------------------------------------------------------


def csrf_token(session_token: str) -> str:
    """Return the CSRF token of a session, which pages of other sites can't know.

    A hash is enough, because the session token is secret. The prefix makes it differ from the stored hash.
    """
    return hash_of(f"foliot cross-site request:{session_token}")


def is_csrf_valid(session_token: str, given: str | None) -> bool:
    """Whether the CSRF token belongs to the session. Compares in constant time."""
    expected = csrf_token(session_token)
    return given is not None and hmac.compare_digest(
        expected.encode(), given.encode("utf-8", "surrogatepass")
    )


def refuses_cross_site(method: str, headers: Mapping[str, str], host: str | None, *others: str) -> bool:
    """Whether to refuse a request that may change something because it comes from another site's page.

    `headers` has lower-case names or ignores case. `host` is the request's Host header. `others` are further
    host names of this server, for example behind a proxy that does not pass the name on. A client that sends
    neither Origin nor Sec-Fetch-Site is not a browser, or an old one: then only the cookie's SameSite and the
    CSRF token protect.
    """
    if method.upper() in _SAFE_METHODS:
        return False
    if headers.get("sec-fetch-site", "none").strip().lower() not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return origin is not None and not _is_own(origin, [each for each in (host, *others) if each])


def _is_own(origin: str, hosts: list[str]) -> bool:
    try:
        parts = urlsplit(origin.strip().lower())
    except ValueError:
        return False
    default_port = _DEFAULT_PORTS.get(parts.scheme)
    if default_port is None or not parts.netloc:  # "null" is the origin of sandboxed pages
        return False
    own = {host.strip().lower().removesuffix(default_port) for host in hosts}
    return parts.netloc.removesuffix(default_port) in own
