"""Tokens: who may say that somebody is calling, and everything that a forger would try."""

import asyncio
import base64
import gzip
import hmac
import json
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from foliot.access import jwt_tokens
from foliot.access.jwt_tokens import (
    FIRST_RETRY_S,
    KEYS_HOLD_S,
    MAX_FETCH_BYTES,
    MAX_LENGTH,
    REFRESH_EVERY_S,
    IssuerKeys,
    TokenVerifier,
)
from foliot.access.principal import CredentialKind, Role
from foliot.model.errors import UnauthenticatedError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.timing.clock import VirtualClock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW_S = int(NOW.timestamp())
SECRET = "a shared secret of thirty-two bytes, or more"
HOST = UUID("01900000-0000-7000-8000-000000000001")
CLAIMS: dict[str, Any] = {"sub": "ann@example.com", "role": "editor", "exp": NOW_S + 60}
LEFT_OUT = "left out"
REFUSAL = "the credential is missing, not valid, or no longer valid"


def claims_with(**changed: Any) -> dict[str, Any]:
    return {name: value for name, value in (CLAIMS | changed).items() if value is not LEFT_OUT}


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def raw(header: Any, claims: Any, secret: bytes | None = SECRET.encode(), digest: str = "sha256") -> str:
    """A token put together by hand, such as no library would; without a secret its signature is empty."""
    parts = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in (header, claims)]
    signed = ".".join(b64(part) for part in parts)
    return f"{signed}.{b64(hmac.new(secret, signed.encode(), digest).digest()) if secret else ''}"


def by_secret(**changed: Any) -> str:
    return raw({"alg": "HS256", "typ": "JWT"}, claims_with(**changed))


def by_issuer(key: Any, algorithm: str, kid: str | None = "one", **changed: Any) -> str:
    headers = {} if kid is None else {"kid": kid}
    with warnings.catch_warnings(action="ignore"):  # some keys here are weak on purpose
        return jwt.encode(claims_with(**changed), key, algorithm, headers)


@cache
def rsa_key(bits: int = 2048, number: int = 0) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


EC_KEYS = {
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
}
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def key_for(algorithm: str) -> Any:
    if algorithm.startswith(("RS", "PS")):
        return rsa_key()
    return ED_KEY if algorithm == "EdDSA" else EC_KEYS[algorithm]


def jwk_of(private: Any, algorithm: str, kid: str | None = "one", **more: Any) -> dict[str, Any]:
    public = jwt.get_algorithm_by_name(algorithm).to_jwk(private.public_key(), as_dict=True)
    return public | ({} if kid is None else {"kid": kid}) | more


class Issuer:
    """An HTTP server on loopback that answers with a JWK set, or as badly as it is told to."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = 0
        self.heard = b""
        self.head = b"HTTP/1.1 200 OK\r\n"
        self.body = b""
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.was_asked = asyncio.Event()

    def publish(self, *keys: dict[str, Any]) -> None:
        self.head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        self.body = json.dumps({"keys": keys}).encode()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard = await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        self.was_asked.set()
        await self.is_open.wait()
        length = f"Content-Length: {len(self.body)}\r\n".encode()
        writer.write(self.head + length + b"Connection: close\r\n\r\n" + self.body)
        writer.close()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Issuer"]:
        server = await asyncio.start_server(self.answer, "127.0.0.1")
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/jwks.json"
        try:
            yield self
        finally:
            self.is_open.set()
            server.close()
            await server.wait_closed()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOW)


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with Issuer().listening() as listening:
        yield listening


@pytest.fixture
async def issuer_keys(issuer: Issuer, clock: VirtualClock) -> AsyncIterator[IssuerKeys]:
    keys = IssuerKeys(issuer.url, clock)
    yield keys
    await keys.close()


@pytest.fixture
def verifier(issuer_keys: IssuerKeys, clock: VirtualClock) -> TokenVerifier:
    """Knows both: the secret, and the issuer."""
    return TokenVerifier(clock, secret=SECRET, issuer_keys=issuer_keys)


@pytest.fixture
def secret_only(clock: VirtualClock) -> TokenVerifier:
    return TokenVerifier(clock, secret=SECRET)


async def refuses(verifier: TokenVerifier, token: str) -> bool:
    """Refused, and in words that tell a forger nothing."""
    try:
        await verifier.verify(token)
    except UnauthenticatedError as error:
        return (str(error), error.__cause__) == (REFUSAL, None)
    return False


# --- what a token says ---------------------------------------------------------------------------------


async def test_a_token_tells_who_calls(secret_only: TokenVerifier) -> None:
    principal = await secret_only.verify(by_secret(host_id=str(HOST)))
    assert (principal.name, principal.role, principal.host_id) == ("ann@example.com", Role.EDITOR, HOST)
    assert principal.kind is CredentialKind.JWT
    assert not principal.is_operator
    assert len(principal.credential) == len("jwt:") + 40


async def test_a_token_without_a_host_is_the_default_hosts(secret_only: TokenVerifier) -> None:
    assert (await secret_only.verify(by_secret())).host_id == DEFAULT_HOST_ID


@pytest.mark.parametrize("role", Role)
async def test_each_role_can_be_given(secret_only: TokenVerifier, role: Role) -> None:
    assert (await secret_only.verify(by_secret(role=role.value))).role is role


async def test_a_token_never_makes_an_operator(secret_only: TokenVerifier) -> None:
    principal = await secret_only.verify(by_secret(role="admin", sub="operator", is_operator=True))
    assert not principal.is_operator
    assert principal.credential != "operator"


async def test_the_credential_is_the_same_for_every_token_of_one_caller(secret_only: TokenVerifier) -> None:
    async def credential(**changed: Any) -> str:
        return (await secret_only.verify(by_secret(**changed))).credential

    mine = await credential(iss="a", sub="b")
    assert await credential(iss="a", sub="b", exp=NOW_S + 7, role="viewer") == mine
    others = [{"iss": "ab", "sub": "b"}, {"iss": "a", "sub": "c"}, {"sub": "b"}, {"iss": "", "sub": "ab"}]
    others += [{"iss": "a", "sub": "b", "host_id": str(HOST)}, {"iss": 'a", "b', "sub": "b"}]
    assert len({mine, *[await credential(**each) for each in others]}) == 1 + len(others)


@pytest.mark.parametrize(
    "changed",
    [
        {"sub": LEFT_OUT},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": ["ann"]},
        {"sub": "a\0b"},
        {"sub": "a\nb"},
        {"sub": "\ud800"},
        {"sub": "a" * 256},
        {"role": LEFT_OUT},
        {"role": None},
        {"role": ""},
        {"role": "root"},
        {"role": "Admin"},
        {"role": "admin "},
        {"role": ["admin"]},
        {"role": {"admin": True}},
        {"role": True},
        {"host_id": None},
        {"host_id": ""},
        {"host_id": 1},
        {"host_id": [str(HOST)]},
        {"host_id": "default"},
        {"host_id": HOST.hex},
        {"host_id": f"{{{HOST}}}"},
        {"host_id": f"urn:uuid:{HOST}"},
        {"host_id": f" {HOST}"},
        {"host_id": "*"},
    ],
    ids=str,
)
async def test_a_token_that_does_not_say_who_where_and_what_is_refused(
    secret_only: TokenVerifier, changed: dict[str, Any]
) -> None:
    assert await refuses(secret_only, by_secret(**changed))


# --- when it holds -------------------------------------------------------------------------------------


async def test_a_token_is_over_the_moment_it_expires(secret_only: TokenVerifier, clock: VirtualClock) -> None:
    token = by_secret(exp=NOW_S + 10)
    clock.advance(9.999)
    await secret_only.verify(token)
    clock.advance(0.001)
    assert await refuses(secret_only, token)


async def test_a_token_does_not_hold_before_its_time(secret_only: TokenVerifier, clock: VirtualClock) -> None:
    token = by_secret(nbf=NOW_S + 10)
    clock.advance(9.999)
    assert await refuses(secret_only, token)
    clock.advance(0.001)
    await secret_only.verify(token)


async def test_a_token_for_ever_is_no_trouble(secret_only: TokenVerifier) -> None:
    await secret_only.verify(by_secret(exp=10**400))


@pytest.mark.parametrize("name", ["exp", "nbf"])
@pytest.mark.parametrize(
    "value",
    [None, True, "9999999999", "", [9999999999], {}, float("nan"), float("inf"), float("-inf")],
    ids=str,
)
async def test_a_time_that_is_no_number_is_refused(
    secret_only: TokenVerifier, name: str, value: object
) -> None:
    assert await refuses(secret_only, by_secret(**{name: value}))


@pytest.mark.parametrize("value", [LEFT_OUT, 0, -1, -(10**400), NOW_S - 1, NOW_S, NOW_S - 0.5])
async def test_a_token_without_an_end_or_after_it_is_refused(
    secret_only: TokenVerifier, value: object
) -> None:
    assert await refuses(secret_only, by_secret(exp=value))


# --- for whom, and from whom ---------------------------------------------------------------------------


@pytest.mark.parametrize("iss", [LEFT_OUT, None, "", "https://other", ["https://us"], {"https://us": 1}, 7])
async def test_a_wrong_or_missing_issuer_is_refused(clock: VirtualClock, iss: object) -> None:
    verifier = TokenVerifier(clock, secret=SECRET, issuer="https://us")
    await verifier.verify(by_secret(iss="https://us"))
    assert await refuses(verifier, by_secret(iss=iss))


@pytest.mark.parametrize(
    "aud", [LEFT_OUT, None, "", "other", "foliot2", [], ["other"], {"foliot": 1}, 7, [7]]
)
async def test_a_wrong_or_missing_audience_is_refused(clock: VirtualClock, aud: object) -> None:
    verifier = TokenVerifier(clock, secret=SECRET, audience="foliot")
    await verifier.verify(by_secret(aud="foliot"))
    await verifier.verify(by_secret(aud=["other", "foliot"]))
    assert await refuses(verifier, by_secret(aud=aud))


async def test_a_token_that_was_made_for_somebody_is_refused_by_who_has_no_name(
    secret_only: TokenVerifier,
) -> None:
    assert await refuses(secret_only, by_secret(aud="another service"))


# --- forged --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", None, 0, [], ["HS256"], {}, LEFT_OUT])
@pytest.mark.parametrize("secret", [None, SECRET.encode()])
async def test_a_token_can_not_choose_to_have_no_signature(
    verifier: TokenVerifier, alg: object, secret: bytes | None
) -> None:
    header = {"typ": "JWT"} | ({} if alg is LEFT_OUT else {"alg": alg})
    assert await refuses(verifier, raw(header, CLAIMS, secret))


@pytest.mark.parametrize("alg", ["HS384", "HS512", "hs256", "HS256 ", "RS256", "ES256", "EdDSA", "dir"])
async def test_the_secret_is_for_one_algorithm(secret_only: TokenVerifier, alg: str) -> None:
    for digest in ("sha256", "sha384", "sha512"):
        assert await refuses(secret_only, raw({"alg": alg}, CLAIMS, SECRET.encode(), digest))


async def test_a_token_of_another_secret_is_refused(verifier: TokenVerifier) -> None:
    for secret in (b"", b"secret", SECRET.upper().encode(), SECRET.encode()[:-1], b"\0" * 32):
        assert await refuses(verifier, raw({"alg": "HS256"}, CLAIMS, secret or None))


async def test_nothing_of_a_token_can_be_changed_or_left_out(secret_only: TokenVerifier) -> None:
    token = by_secret()
    header, payload, signature = token.split(".")
    other = b64(json.dumps(claims_with(role="admin")).encode())
    for forged in (
        f"{header}.{other}.{signature}",
        f"{header}.{payload}.",
        f"{header}.{payload}",
        f"{header}..{signature}",
        f".{payload}.{signature}",
        f"{payload}.{header}.{signature}",
        f"{header}.{payload}.{signature}.{signature}",
        f"{token}A",
        f"{token} ",
        f" {token}",
        f"{token}\n",
        token.replace(".", ","),
        f"{header}.{payload}.{signature[::-1]}",
    ):
        assert await refuses(secret_only, forged), forged
    for length in range(len(token)):
        assert await refuses(secret_only, token[:length])


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "ä.ö.ü",
        "\ud800.\ud800.\ud800",
        "\0.\0.\0",
        "\u043530.e30.e30",
        f"{b64(b'[]')}.{b64(b'{}')}.",
        f"{b64(b'null')}.{b64(b'{}')}.",
        f"{b64(bytes([255, 254, 0]))}.{b64(b'{}')}.",
        f"{b64(b'[' * 3000)}.{b64(b'{}')}.",
        f"{b64(b'{' + b'0' * 3000)}.{b64(b'{}')}.",
    ],
)
async def test_what_is_no_token_is_refused(verifier: TokenVerifier, token: str) -> None:
    assert await refuses(verifier, token)


@pytest.mark.parametrize(
    "payload", [b"", b"null", b"[]", b'"text"', b"7", b"[" * 3000, b'{"exp":' + b"9" * 4400 + b"}", b"\xff"]
)
async def test_a_well_signed_payload_that_is_no_object_is_refused(
    secret_only: TokenVerifier, payload: bytes
) -> None:
    assert await refuses(secret_only, raw({"alg": "HS256"}, payload))


async def test_a_token_that_is_too_long_is_not_even_looked_at(
    verifier: TokenVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[object] = []
    monkeypatch.setattr(jwt, "get_unverified_header", looked_at.append)
    for token in (by_secret(pad="x" * MAX_LENGTH), "a.b." + "c" * 10_000_000, "." * 10_000_000):
        assert await refuses(verifier, token)
    assert looked_at == []


@pytest.mark.parametrize(
    "more",
    [
        {"crit": ["exp"], "exp": 1},
        {"crit": []},
        {"b64": False, "crit": ["b64"]},
        {"kid": 7},
        {"kid": ["one"]},
    ],
    ids=str,
)
async def test_a_header_that_asks_for_what_is_not_understood_is_refused(
    verifier: TokenVerifier, more: dict[str, Any]
) -> None:
    assert await refuses(verifier, raw({"alg": "HS256"} | more, CLAIMS))


async def test_the_reason_for_the_log_holds_nothing_of_the_token(secret_only: TokenVerifier) -> None:
    for token in (by_secret(sub="ann\n", role="x"), by_secret(role="sesame"), raw({"alg": "sesame"}, CLAIMS)):
        with pytest.raises(UnauthenticatedError) as caught:
            await secret_only.verify(token)
        assert caught.value.why
        assert not any(part in caught.value.why for part in ("ann", "sesame", *token.split(".")))


@pytest.mark.parametrize("secret", ["", "x" * 31, "ü" * 15])
def test_a_short_secret_is_refused_and_not_shown(clock: VirtualClock, secret: str) -> None:
    with pytest.raises(ValueError, match="at least 32") as caught:
        TokenVerifier(clock, secret=secret)
    assert not secret or secret not in str(caught.value)


def test_a_public_key_is_no_secret(clock: VirtualClock) -> None:
    pem = rsa_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    for text in (pem, json.dumps(jwk_of(rsa_key(), "RS256"))):
        with pytest.raises(ValueError, match="public key"):
            TokenVerifier(clock, secret=text)


async def test_without_a_secret_its_tokens_are_refused(issuer_keys: IssuerKeys, clock: VirtualClock) -> None:
    verifier = TokenVerifier(clock, issuer_keys=issuer_keys)
    for secret in (SECRET.encode(), b"\0", None):
        assert await refuses(verifier, raw({"alg": "HS256"}, CLAIMS, secret))


# --- signed by an issuer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "algorithm",
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"],
)
@pytest.mark.parametrize("kid", ["one", None])
async def test_a_token_of_the_issuer_is_taken(
    verifier: TokenVerifier, issuer: Issuer, algorithm: str, kid: str | None
) -> None:
    key = key_for(algorithm)
    issuer.publish(jwk_of(key, algorithm))
    token = by_issuer(key, algorithm, kid)
    assert (await verifier.verify(token)).name == CLAIMS["sub"]
    assert await refuses(verifier, token[:-8] + "AAAAAAAA")


async def test_a_key_of_edwards_longer_curve_is_taken(verifier: TokenVerifier, issuer: Issuer) -> None:
    key = ed448.Ed448PrivateKey.generate()
    issuer.publish(jwk_of(key, "EdDSA"))
    await verifier.verify(by_issuer(key, "EdDSA"))


async def test_the_issuers_public_key_is_never_taken_for_a_secret(
    verifier: TokenVerifier, issuer_keys: IssuerKeys, issuer: Issuer, clock: VirtualClock
) -> None:
    """The confusion of algorithms: who knows the public key signs with it as if it were a shared secret."""
    public = rsa_key().public_key()
    jwk = jwk_of(rsa_key(), "RS256")
    issuer.publish(jwk)
    await verifier.verify(by_issuer(rsa_key(), "RS256"))
    spellings = [
        public.public_bytes(encoding, form)
        for form in (PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1)
        for encoding in (Encoding.PEM, Encoding.DER)
    ]
    spellings += [spellings[0].strip(), json.dumps(jwk).encode(), jwk["n"].encode(), issuer.body]
    for each in (verifier, TokenVerifier(clock, issuer_keys=issuer_keys)):
        for spelling in spellings:
            for alg in ("HS256", "RS256"):
                assert await refuses(each, raw({"alg": alg, "kid": "one"}, CLAIMS, spelling))


async def test_a_secret_among_the_issuers_keys_is_not_used(verifier: TokenVerifier, issuer: Issuer) -> None:
    known = b"known to all who read the JWK set, long enough"
    issuer.publish({"kty": "oct", "kid": "one", "k": b64(known)}, jwk_of(ED_KEY, "EdDSA", "two"))
    for alg in ("HS256", "RS256", "EdDSA"):
        assert await refuses(verifier, raw({"alg": alg, "kid": "one"}, CLAIMS, known))


async def test_a_key_is_used_for_its_own_algorithm_only(verifier: TokenVerifier, issuer: Issuer) -> None:
    issuer.publish(jwk_of(rsa_key(), "RS256", alg="RS256"))
    await verifier.verify(by_issuer(rsa_key(), "RS256"))
    for other in ("PS256", "RS512"):
        assert await refuses(verifier, by_issuer(rsa_key(), other))


async def test_the_key_that_is_named_must_be_the_one_that_signed(
    verifier: TokenVerifier, issuer: Issuer
) -> None:
    mine, other = ec.generate_private_key(ec.SECP256R1()), EC_KEYS["ES256"]
    issuer.publish(jwk_of(other, "ES256", "one"), jwk_of(ED_KEY, "EdDSA", "two"))
    await verifier.verify(by_issuer(other, "ES256", "one"))
    assert await refuses(verifier, by_issuer(mine, "ES256", "one"))
    assert await refuses(verifier, by_issuer(other, "ES256", "two"))


@pytest.mark.parametrize("kid", ["", "../../dev/null", "one\0", "ONE", "' OR 1=1 --", "http://x/", "|id"])
async def test_a_key_id_that_is_not_known_is_refused(
    verifier: TokenVerifier, issuer: Issuer, kid: str
) -> None:
    issuer.publish(jwk_of(ED_KEY, "EdDSA", "one"))
    await verifier.verify(by_issuer(ED_KEY, "EdDSA", "one"))
    assert await refuses(verifier, by_issuer(ED_KEY, "EdDSA", kid))


async def test_a_token_that_names_no_key_is_refused_when_it_could_be_several(
    verifier: TokenVerifier, issuer: Issuer
) -> None:
    other = ed25519.Ed25519PrivateKey.generate()
    issuer.publish(jwk_of(ED_KEY, "EdDSA", "one"), jwk_of(other, "EdDSA", "two"))
    assert await refuses(verifier, by_issuer(ED_KEY, "EdDSA", None))
    await verifier.verify(by_issuer(ED_KEY, "EdDSA", "one"))


async def test_a_key_that_a_token_brings_along_is_not_used(verifier: TokenVerifier, issuer: Issuer) -> None:
    forger = ed25519.Ed25519PrivateKey.generate()
    issuer.publish(jwk_of(ED_KEY, "EdDSA", "one"))
    async with Issuer().listening() as forgers:
        forgers.publish(jwk_of(forger, "EdDSA", "one"))
        for more in ({"jku": forgers.url}, {"x5u": forgers.url}, {"jwk": jwk_of(forger, "EdDSA")}):
            token = jwt.encode(CLAIMS, forger, "EdDSA", {"kid": "one", **more})
            assert await refuses(verifier, token)
        assert forgers.asked == 0


async def test_keys_that_are_not_for_checking_signatures_are_passed_over(
    verifier: TokenVerifier, issuer: Issuer
) -> None:
    weak = rsa_key(1024)
    issuer.publish(
        jwk_of(weak, "RS256", "weak"),
        jwk_of(ED_KEY, "EdDSA", "enc", use="enc"),
        jwk_of(ED_KEY, "EdDSA", "ops", key_ops=["sign"]),
        jwk_of(ED_KEY, "EdDSA", "odd", key_ops="verify!"),
        jwk_of(ED_KEY, "EdDSA", "alg", alg="RS256"),
        jwk_of(ED_KEY, "EdDSA", "good", use="sig", key_ops=["verify"], alg="EdDSA"),
    )
    await verifier.verify(by_issuer(ED_KEY, "EdDSA", "good"))
    for kid in ("enc", "ops", "odd", "alg"):
        assert await refuses(verifier, by_issuer(ED_KEY, "EdDSA", kid))
    assert await refuses(verifier, by_issuer(weak, "RS256", "weak"))


async def test_a_broken_key_does_not_spoil_the_others(verifier: TokenVerifier, issuer: Issuer) -> None:
    off_curve = jwk_of(EC_KEYS["ES256"], "ES256", "off") | {"x": b64(b"\1" * 32), "y": b64(b"\1" * 32)}
    broken: list[Any] = [
        off_curve,
        None,
        7,
        [],
        {},
        {"kty": ["RSA"]},
        {"kty": "RSA", "n": 7, "e": []},
        {"kty": "EC", "crv": "P-999"},
        {"kty": "OKP", "crv": "Ed25519", "x": "!"},
        jwk_of(ED_KEY, "EdDSA") | {"kid": 7},
    ]
    issuer.publish(*broken, jwk_of(ED_KEY, "EdDSA", "good"))
    await verifier.verify(by_issuer(ED_KEY, "EdDSA", "good"))


async def test_of_a_private_key_that_was_published_the_public_part_is_used(
    verifier: TokenVerifier, issuer: Issuer
) -> None:
    private = jwt.get_algorithm_by_name("RS256").to_jwk(rsa_key(), as_dict=True)
    assert "d" in private
    issuer.publish(private | {"kid": "one", "key_ops": ["sign", "verify"]})
    await verifier.verify(by_issuer(rsa_key(), "RS256"))


# --- getting the issuer's keys -------------------------------------------------------------------------


@pytest.fixture
def well(issuer: Issuer) -> str:
    """A token that the issuer's first key has signed."""
    issuer.publish(jwk_of(ED_KEY, "EdDSA", "one"))
    return by_issuer(ED_KEY, "EdDSA", "one", exp=NOW_S + 86_400)


async def test_keys_are_asked_for_once_in_ten_minutes(
    verifier: TokenVerifier, issuer: Issuer, clock: VirtualClock, well: str
) -> None:
    await verifier.verify(well)
    clock.advance(KEYS_HOLD_S - 0.001)
    await verifier.verify(well)
    assert issuer.asked == 1
    clock.advance(0.001)
    await verifier.verify(well)
    assert issuer.asked == 2


async def test_many_at_once_ask_once(verifier: TokenVerifier, issuer: Issuer, well: str) -> None:
    await asyncio.gather(*(verifier.verify(well) for _ in range(20)))
    assert issuer.asked == 1


async def test_a_key_that_was_withdrawn_is_refused_after_ten_minutes(
    verifier: TokenVerifier, issuer: Issuer, clock: VirtualClock, well: str
) -> None:
    await verifier.verify(well)
    issuer.publish(jwk_of(EC_KEYS["ES256"], "ES256", "two"))
    clock.advance(KEYS_HOLD_S)
    assert await refuses(verifier, well)


async def test_a_new_key_is_found_but_made_up_ones_do_not_make_us_ask_without_end(
    verifier: TokenVerifier, issuer: Issuer, clock: VirtualClock, well: str
) -> None:
    await verifier.verify(well)
    issuer.publish(jwk_of(ED_KEY, "EdDSA", "one"), jwk_of(EC_KEYS["ES256"], "ES256", "two"))
    rotated = by_issuer(EC_KEYS["ES256"], "ES256", "two", exp=NOW_S + 86_400)
    clock.advance(REFRESH_EVERY_S - 0.001)
    assert await refuses(verifier, rotated)
    assert issuer.asked == 1
    clock.advance(0.001)
    await verifier.verify(rotated)
    for number in range(100):
        assert await refuses(verifier, by_issuer(ED_KEY, "EdDSA", f"made up {number}"))
    assert issuer.asked == 2
    await verifier.verify(well)


def _not_there(issuer: Issuer) -> None:
    issuer.head = b"HTTP/1.1 404 Not Found\r\n"


def _moved(issuer: Issuer) -> None:
    issuer.head = f"HTTP/1.1 302 Found\r\nLocation: {issuer.url}\r\n".encode()


def _garbage(issuer: Issuer) -> None:
    issuer.body = b"<html>"


def _no_set(issuer: Issuer) -> None:
    issuer.body = b'{"keys": {}}'


def _a_list(issuer: Issuer) -> None:
    issuer.body = b"[]"


def _deep(issuer: Issuer) -> None:
    issuer.body = b"[" * 100_000


def _empty(issuer: Issuer) -> None:
    issuer.publish()


def _unusable(issuer: Issuer) -> None:
    issuer.publish({"kty": "oct", "k": "AAAA"})


def _endless(issuer: Issuer) -> None:
    issuer.body += b" " * (MAX_FETCH_BYTES + 1)


def _compressed(issuer: Issuer) -> None:
    issuer.body = gzip.compress(issuer.body)
    issuer.head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"


def _no_http(issuer: Issuer) -> None:
    issuer.head = b"\0\0\0"


@pytest.mark.parametrize(
    "go_wrong",
    [
        _not_there,
        _moved,
        _garbage,
        _no_set,
        _a_list,
        _deep,
        _empty,
        _unusable,
        _endless,
        _compressed,
        _no_http,
    ],
)
async def test_keys_are_kept_when_the_issuer_answers_badly(
    verifier: TokenVerifier,
    issuer_keys: IssuerKeys,
    issuer: Issuer,
    clock: VirtualClock,
    well: str,
    go_wrong: Any,
) -> None:
    await verifier.verify(well)
    body, head = issuer.body, issuer.head
    go_wrong(issuer)
    clock.advance(KEYS_HOLD_S)
    await verifier.verify(well)
    assert issuer.asked == 2
    assert issuer_keys.last_problem
    clock.advance(REFRESH_EVERY_S)
    issuer.body, issuer.head = body, head
    await verifier.verify(well)
    assert issuer.asked == 3
    assert issuer_keys.last_problem is None


async def test_keys_are_kept_while_the_issuer_can_not_be_reached(clock: VirtualClock) -> None:
    async with Issuer().listening() as issuer:
        issuer.publish(jwk_of(ED_KEY, "EdDSA", "one"))
        keys = IssuerKeys(issuer.url, clock)
        verifier = TokenVerifier(clock, issuer_keys=keys)
        token = by_issuer(ED_KEY, "EdDSA", "one", exp=NOW_S + 86_400)
        await verifier.verify(token)
    clock.advance(KEYS_HOLD_S)
    await verifier.verify(token)
    assert keys.last_problem
    await verifier.close()


async def test_an_issuer_that_never_ends_its_answer_is_given_up(
    verifier: TokenVerifier,
    issuer_keys: IssuerKeys,
    issuer: Issuer,
    well: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jwt_tokens, "FETCH_LIMIT_S", 0.05)
    issuer.is_open.clear()
    assert await refuses(verifier, well)
    assert issuer_keys.last_problem == "TimeoutError: "


async def test_before_the_first_keys_are_had_they_are_soon_asked_for_again(
    verifier: TokenVerifier, issuer: Issuer, clock: VirtualClock, well: str
) -> None:
    head, issuer.head = issuer.head, b"HTTP/1.1 503 Service Unavailable\r\n"
    assert await refuses(verifier, well)
    issuer.head = head
    clock.advance(FIRST_RETRY_S - 0.001)
    assert await refuses(verifier, well)
    assert issuer.asked == 1
    clock.advance(0.001)
    await verifier.verify(well)


async def test_while_keys_are_asked_for_again_others_go_on_with_what_is_known(
    verifier: TokenVerifier, issuer: Issuer, clock: VirtualClock, well: str
) -> None:
    await verifier.verify(well)
    clock.advance(KEYS_HOLD_S)
    issuer.is_open.clear()
    issuer.was_asked.clear()
    asking = asyncio.create_task(verifier.verify(well))
    await issuer.was_asked.wait()
    await verifier.verify(well)
    assert not asking.done()
    issuer.is_open.set()
    await asking
    assert issuer.asked == 2


async def test_a_caller_who_hangs_up_does_not_stop_the_asking(
    verifier: TokenVerifier, issuer: Issuer, well: str
) -> None:
    issuer.is_open.clear()
    first = asyncio.create_task(verifier.verify(well))
    await issuer.was_asked.wait()
    second = asyncio.create_task(verifier.verify(well))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    issuer.is_open.set()
    assert (await second).name == CLAIMS["sub"]
    assert issuer.asked == 1


async def test_closing_ends_an_asking_under_way(issuer: Issuer, clock: VirtualClock, well: str) -> None:
    verifier = TokenVerifier(clock, issuer_keys=IssuerKeys(issuer.url, clock))
    issuer.is_open.clear()
    asking = asyncio.create_task(verifier.verify(well))
    await issuer.was_asked.wait()
    await verifier.close()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_the_environment_does_not_lead_the_asking_elsewhere(
    issuer: Issuer, clock: VirtualClock, well: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Issuer().listening() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        verifier = TokenVerifier(clock, issuer_keys=IssuerKeys(issuer.url, clock))
        await verifier.verify(well)
        await verifier.close()
        assert proxy.asked == 0


async def test_nothing_of_a_token_is_sent_to_the_issuer(
    verifier: TokenVerifier, issuer: Issuer, well: str
) -> None:
    await verifier.verify(well)
    assert b"authorization" not in issuer.heard.lower()
    assert not any(part.encode() in issuer.heard for part in well.split("."))


@pytest.mark.parametrize(
    "url", ["", "issuer", "ftp://issuer/x", "file:///etc/passwd", "https://", "http://\n"]
)
def test_an_address_that_is_none_is_refused(clock: VirtualClock, url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|address"):
        IssuerKeys(url, clock)
