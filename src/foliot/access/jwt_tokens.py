"""Verification of JSON Web Tokens from an external issuer.

The key decides the allowed algorithms, never the token: the shared secret is only for HS256, a public key
only for signatures of its own kind. So nobody can use a public key as a shared secret, and a token can't
choose to be unsigned. The headers that say where to find a key (`jku`, `x5u`, `jwk`) are ignored.

Nothing is stored for tokens, and they can't be revoked. A token is valid until its `exp`, so `exp` is
required.
"""

import asyncio
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from foliot.access.keys import MIN_SECRET_BYTES
from foliot.access.principal import CredentialKind, Principal, Role
from foliot.model.errors import UnauthenticatedError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.timing.clock import Clock

MIN_RSA_BITS = 2048
MAX_LENGTH = 8192
MAX_SUBJECT = 255
"""Length of the database columns that store the author of a change."""
KEYS_HOLD_S = 600.0
REFRESH_EVERY_S = 30.0
"""Minimum time between two fetches of keys. An unknown key id causes a fetch, and anybody can invent one."""
FIRST_RETRY_S = 5.0
"""Minimum time between two fetches while no keys were ever fetched: until then no token is accepted."""
FETCH_LIMIT_S = 5.0
MAX_FETCH_BYTES = 256 * 1024
MAX_KEYS = 100

_BY_SECRET = "HS256"  # noqa: S105 - an algorithm
_OF_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_OF_CURVE = {
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
    ("OKP", "Ed448"): ("EdDSA",),
}
_PUBLIC_PARTS = ("kty", "n", "e", "crv", "x", "y")


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key of the issuer, and the algorithms that it may be used with."""

    key_id: str | None
    key: Any
    algorithms: tuple[str, ...]


class IssuerKeys:
    """The issuer's public keys: fetched on demand, cached, and still used while the issuer is unreachable."""

    def __init__(self, url: str, clock: Clock, client: httpx2.AsyncClient | None = None) -> None:
        """Raises ValueError if the URL is not valid."""
        try:
            self._url = httpx2.URL(url)
        except httpx2.InvalidURL as error:
            raise ValueError(f"is not a URL: {error}") from None
        if self._url.scheme not in ("http", "https") or not self._url.host:
            raise ValueError("must be an address such as https://issuer.example.com/jwks.json")
        self._clock = clock
        self._client = client or httpx2.AsyncClient(trust_env=False, timeout=FETCH_LIMIT_S)
        self._keys: Sequence[PublicKey] = ()
        self._had_at: float | None = None
        self._asked_at: float | None = None
        self._asking: asyncio.Task[None] | None = None
        self.last_problem: str | None = None
        """Why the last fetch of keys failed. None: it succeeded, or there was none yet."""

    async def find(self, key_id: str | None, algorithm: str) -> PublicKey | None:
        """Return the key with this id. If `key_id` is None, return the only key for the algorithm.

        None: no such key, or several keys for the algorithm.
        """
        found = self._known(key_id, algorithm)
        if found is not None and not self._is_stale():
            return found
        if found is None or self._asking is None:
            await self._ask()
        return self._known(key_id, algorithm)

    async def close(self) -> None:
        if (asking := self._asking) is not None:
            asking.cancel()
            await asyncio.wait({asking})
        await self._client.aclose()

    def _known(self, key_id: str | None, algorithm: str) -> PublicKey | None:
        fitting = [key for key in self._keys if algorithm in key.algorithms]
        if key_id is not None:
            return next((key for key in fitting if key.key_id == key_id), None)
        return fitting[0] if len(fitting) == 1 else None

    def _is_stale(self) -> bool:
        return self._had_at is None or self._clock.monotonic() - self._had_at >= KEYS_HOLD_S

    async def _ask(self) -> None:
        if self._asking is None:
            pause_s = FIRST_RETRY_S if self._had_at is None else REFRESH_EVERY_S
            if self._asked_at is not None and self._clock.monotonic() - self._asked_at < pause_s:
                return
            self._asked_at = self._clock.monotonic()
            self._asking = asyncio.create_task(self._fetch(), name="jwks")
        # One fetch serves all waiting callers. It continues when a caller is cancelled: a client that
        # disconnects must not waste the only fetch allowed in this interval.
        await asyncio.shield(self._asking)

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(FETCH_LIMIT_S):
                self._keys = _keys_of(await self._read())
            self._had_at = self._clock.monotonic()
            self.last_problem = None
        except Exception as error:
            self.last_problem = f"{type(error).__name__}: {error}"
        finally:
            self._asking = None

    async def _read(self) -> bytes:
        # No compression: a few bytes could expand to many before the limit is checked.
        plain = {"Accept": "application/json", "Accept-Encoding": "identity"}
        async with self._client.stream("GET", self._url, headers=plain) as response:
            if response.status_code != 200:
                raise ValueError(f"the answer's status is {response.status_code}")
            body = bytearray()
            async for part in response.aiter_raw():
                body += part
                if len(body) > MAX_FETCH_BYTES:
                    raise ValueError(f"the answer is longer than {MAX_FETCH_BYTES} bytes")
        return bytes(body)


def _keys_of(body: bytes) -> list[PublicKey]:
    """Return the usable keys of a JWK set. Raises ValueError if it has none, so that cached keys stay."""
    document = json.loads(body)
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("the answer is not a JWK set")
    found = [key for item in listed[:MAX_KEYS] if (key := _key_of(item)) is not None]
    if not found:
        raise ValueError("the answer has no key that can be used")
    return found


def _key_of(item: Any) -> PublicKey | None:
    """Parse a key of a JWK set. None: not usable (secret, for encryption, weak, or of unknown kind)."""
    if not isinstance(item, dict) or item.get("use", "sig") != "sig":
        return None
    operations = item.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    kind, curve, key_id = item.get("kty"), item.get("crv"), item.get("kid")
    fitting = _OF_RSA if kind == "RSA" else _OF_CURVE.get((str(kind), str(curve)), ())
    algorithms = tuple(each for each in fitting if item.get("alg", each) == each)
    if not algorithms or not isinstance(key_id, str | None):
        return None
    public = {name: item[name] for name in _PUBLIC_PARTS if name in item}
    try:
        key = jwt.PyJWK(public, algorithms[0]).key
    except Exception:  # one malformed key must not make the other keys unusable
        return None
    if isinstance(key, RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        return None
    return PublicKey(key_id, key, algorithms)


class TokenVerifier:
    """Verifies tokens and returns their principals.

    Accepts tokens signed with the shared secret, with a key of the issuer, or both, as configured.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        secret: str | None = None,
        issuer_keys: IssuerKeys | None = None,
        issuer: str | None = None,
        audience: str | None = None,
    ) -> None:
        """Raises ValueError if the secret is not usable. The message does not contain it."""
        self._clock = clock
        self._secret = None if secret is None else _checked(secret)
        self._issuer_keys = issuer_keys
        self._issuer = issuer
        self._audience = audience

    async def verify(self, token: str) -> Principal:
        """Return the principal of a valid token. Raises UnauthenticatedError."""
        if len(token) > MAX_LENGTH or not token.isascii() or token.count(".") != 2:
            raise UnauthenticatedError("not a token, or too long for one")
        # Any exception of the parser means that the token is not valid.
        try:
            header = jwt.get_unverified_header(token)
        except Exception as error:
            raise UnauthenticatedError(type(error).__name__) from None
        key, algorithms = await self._key_for(header)
        try:
            claims = self._claims(token, key, algorithms)
        except Exception as error:
            raise UnauthenticatedError(type(error).__name__) from None
        self._require_time(claims)
        return _principal_of(claims)

    async def close(self) -> None:
        if self._issuer_keys is not None:
            await self._issuer_keys.close()

    async def _key_for(self, header: dict[str, Any]) -> tuple[Any, Sequence[str]]:
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm == _BY_SECRET and self._secret is not None:
            return self._secret, [_BY_SECRET]
        if self._issuer_keys is not None and isinstance(algorithm, str) and algorithm in _ASYMMETRIC:
            found = await self._issuer_keys.find(key_id, algorithm)
            if found is not None:
                return found.key, found.algorithms
        raise UnauthenticatedError("no key for its algorithm and key id")

    def _claims(self, token: str, key: Any, algorithms: Sequence[str]) -> dict[str, Any]:
        """Verify signature, issuer and audience, and return the claims.

        `_require_time` checks the times, because the library would use its own clock.
        """
        return jwt.decode(
            token,
            key,
            algorithms,
            {
                "require": ["exp", "sub"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "enforce_minimum_key_length": True,
            },
            issuer=self._issuer,
            audience=self._audience,
        )

    def _require_time(self, claims: dict[str, Any]) -> None:
        now = self._clock.now().timestamp()
        if not _is_number(claims["exp"]) or claims["exp"] <= now:
            raise UnauthenticatedError("expired")
        if "nbf" in claims and (not _is_number(claims["nbf"]) or claims["nbf"] > now):
            raise UnauthenticatedError("not valid yet")


_ASYMMETRIC = frozenset((*_OF_RSA, *(each for some in _OF_CURVE.values() for each in some)))


def _checked(secret: str) -> bytes:
    text = secret.encode()
    if len(text) < MIN_SECRET_BYTES:
        raise ValueError(f"has {len(text)} bytes, and needs at least {MIN_SECRET_BYTES}")
    try:
        jwt.get_algorithm_by_name(_BY_SECRET).prepare_key(text)
    except jwt.InvalidKeyError:
        raise ValueError("is a public key or a certificate, which is no secret") from None
    return text


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _principal_of(claims: dict[str, Any]) -> Principal:
    subject, role = claims["sub"], claims.get("role")
    if not (0 < len(subject) <= MAX_SUBJECT and subject.isprintable()):
        raise UnauthenticatedError("its sub is no name")
    if not isinstance(role, str) or role not in _ROLES:
        raise UnauthenticatedError("its role is none of ours")
    host_id = _host_of(claims["host_id"]) if "host_id" in claims else DEFAULT_HOST_ID
    # The identity includes the host, so that stored responses of one host are never replayed for another.
    whole = json.dumps([claims.get("iss"), subject, str(host_id)])
    return Principal(
        credential=f"jwt:{hashlib.sha256(whole.encode()).hexdigest()[:40]}",
        kind=CredentialKind.JWT,
        name=subject,
        role=Role(role),
        host_id=host_id,
    )


_ROLES = frozenset(role.value for role in Role)


def _host_of(value: object) -> UUID:
    try:
        host_id = UUID(value) if isinstance(value, str) else None
    except ValueError:
        host_id = None
    # UUID() also accepts braces, a URN, and text without hyphens.
    if host_id is None or str(host_id) != str(value).lower():
        raise UnauthenticatedError("its host_id is no UUID")
    return host_id
