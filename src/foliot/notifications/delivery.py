"""Send one message to one address: insert secrets, sign the body, and connect through the address guard.

Errors are stored and shown to people. They never contain a secret, even if the receiver's response does.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime

import httpcore2
import httpx2
from pydantic import ValidationError

from foliot.access.address_guard import AddressGuard, InternalAddressError
from foliot.access.secrets import (
    Redactor,
    SecretError,
    SecretResolver,
    encode_in_url,
    references,
    resolve,
)
from foliot.kinds.http_answer import judge, read_answer
from foliot.kinds.http_connections import CONNECT_TIMEOUT_S
from foliot.kinds.target_protocol import AttemptFailedError
from foliot.model.notification import Address, NotificationRuleSpec, ToSlack, ToWebhook
from foliot.model.redaction import running
from foliot.notifications.deliveries_sql import DueNotification
from foliot.notifications.message import (
    BadSigningKeyError,
    signing_key,
    slack_body,
    webhook_body,
    webhook_headers,
)
from foliot.version import __version__

TIMEOUT_S = 15.0
"""Timeout of the whole request. A receiver should accept a message first and process it later."""

_NETWORK_ERRORS = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, OSError)


class Sender:
    """Sends through the connection pool of HTTP targets, which connects only where the guard allows it."""

    def __init__(
        self, guard: AddressGuard, pool: httpcore2.AsyncConnectionPool, secrets: SecretResolver
    ) -> None:
        self._guard = guard
        self._pool = pool
        self._secrets = secrets

    async def send(self, due: DueNotification, now: datetime) -> None:
        """Send a message. Raises AttemptFailedError, which says whether a retry makes sense."""
        to = _address_of(due)
        try:
            secrets = await self._secrets.values(due.host_id, references(to.model_dump()))
        except SecretError as error:
            # Not permanent: a missing secret can still be set, as retries last for hours.
            raise AttemptFailedError(str(error)) from None
        redactor = Redactor(secrets.values())
        with running.hidden(redactor.forms):
            await self._post(self._request(due, to, secrets, now), redactor, now)

    async def _post(self, request: httpcore2.Request, redactor: Redactor, now: datetime) -> None:
        # Always `from None`: an exception of the library may contain the request, with secrets.
        try:
            async with asyncio.timeout(TIMEOUT_S):
                response = await self._pool.handle_async_request(request)
                try:
                    answer = await read_answer(response, redactor)
                finally:
                    await response.aclose()
        except InternalAddressError as error:
            raise AttemptFailedError(redactor.text(str(error)), is_permanent=True) from None
        except TimeoutError:
            raise AttemptFailedError(f"the receiver did not answer within {TIMEOUT_S:g} s") from None
        except _NETWORK_ERRORS as error:
            said = str(error) or type(error).__name__
            raise AttemptFailedError(redactor.text(f"the receiver can't be reached: {said}")) from None
        judge(answer, None, now, can_call_back=False, who="receiver")

    async def close(self) -> None:
        """Close all connections. No send may be running any more."""
        await self._pool.aclose()

    def _request(
        self, due: DueNotification, to: Address, secrets: Mapping[str, str], now: datetime
    ) -> httpcore2.Request:
        url = _url_of(to.url, secrets)
        if refusal := self._guard.refusal_of(url.raw_host.decode("ascii")):
            raise AttemptFailedError(refusal.detail, is_permanent=True)
        headers = {"User-Agent": f"Foliot/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}
        if isinstance(to, ToSlack):
            body = slack_body(due.type, due.message)
        else:
            body = webhook_body(due.message)
            headers |= _signed(due, to, body, secrets, now)
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        return httpcore2.Request(
            "POST",
            httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=[
                (b"Host", url.netloc),
                *((name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()),
            ],
            content=body,
            extensions={"timeout": {"connect": CONNECT_TIMEOUT_S}},
        )


def _address_of(due: DueNotification) -> Address:
    try:
        # Fields written by a newer version are ignored.
        return NotificationRuleSpec.model_validate(due.rule, extra="ignore").to
    except ValidationError:
        raise AttemptFailedError(
            "its rule is deleted, or can't be read any more", is_permanent=True
        ) from None


def _signed(
    due: DueNotification, to: ToWebhook, body: bytes, secrets: Mapping[str, str], now: datetime
) -> dict[str, str]:
    try:
        key = signing_key(resolve(to.secret, secrets))
    except BadSigningKeyError as error:
        raise AttemptFailedError(str(error), is_permanent=True) from None
    return webhook_headers(str(due.notification_id), body, key, now)


def _url_of(template: str, secrets: Mapping[str, str]) -> httpx2.URL:
    try:
        literal = httpx2.URL(template)
        url = httpx2.URL(resolve(template, secrets, encode_in_url))
    except httpx2.InvalidURL:
        raise AttemptFailedError(
            "the URL can't be used once its secrets are in place", is_permanent=True
        ) from None
    if (url.scheme, url.netloc, url.userinfo) != (literal.scheme, literal.netloc, b""):
        raise AttemptFailedError("a secret must not change where a URL leads", is_permanent=True)
    return url
