"""Runs `http` targets: one request to an agent for every attempt.

    secrets    are resolved and inserted. From here on everything that is stored or logged is redacted.
    connect    only to an address that the address guard has checked and allowed.
    answer     is read up to a limit and classified: success, failure to retry, permanent failure, or (202,
               if the agent can call back) work that the agent has accepted.

After a crash, the request may have been carried out. The next attempt has the same Idempotency-Key, so that
an agent can recognise it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpcore2
import httpx2

from foliot.access.address_guard import AddressGuard, InternalAddressError
from foliot.access.secrets import NAME, Redactor, SecretError, SecretResolver, references
from foliot.kinds.http_answer import judge, read_answer
from foliot.kinds.http_connections import guarded_pool
from foliot.kinds.http_request import Callback, build_request
from foliot.kinds.http_target import HttpTarget
from foliot.kinds.target_protocol import TIMED_OUT, AcceptedByAgent, Assignment, AttemptFailedError
from foliot.model.errors import Problem
from foliot.model.event import AgentFailed, Observer, Observers
from foliot.model.redaction import running
from foliot.model.schedule import ScheduleSpec
from foliot.timing.clock import Clock

_NETWORK_ERRORS = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, OSError)


class HttpRunner:
    """Sends requests to agents."""

    def __init__(
        self,
        guard: AddressGuard,
        secrets: SecretResolver,
        clock: Clock,
        *,
        callback: Callback | None = None,
        pool: httpcore2.AsyncConnectionPool | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._guard = guard
        self._secrets = secrets
        self._clock = clock
        self.callback = callback
        self._pool = pool or guarded_pool(guard)
        self._observer = observer or Observers()

    def check(self, spec: ScheduleSpec) -> list[Problem]:
        target = spec.target
        assert isinstance(target, HttpTarget)
        problems = _check_references(target)
        try:
            host = httpx2.URL(target.url).raw_host.decode("ascii")
        except httpx2.InvalidURL as error:
            host = ""
            # This parser refuses unusual spellings of an address. The guard can say which address it is.
            problems += self._check_host(_host_as_written(target.url)) or [
                Problem("/target/url", "url", f"is not a URL: {error}")
            ]
        return problems + (self._check_host(host) if host else [])

    def _check_host(self, host: str) -> list[Problem]:
        refusal = self._guard.refusal_of(host)
        return [Problem("/target/url", refusal.code, refusal.detail, refusal.hint)] if refusal else []

    async def run(self, assignment: Assignment) -> dict[str, Any] | AcceptedByAgent:
        target = assignment.spec.target
        assert isinstance(target, HttpTarget)
        names = references([target.url, target.headers, target.body])
        try:
            secrets = await self._secrets.values(assignment.host_id, names)
        except SecretError as error:
            raise AttemptFailedError(str(error), is_permanent=True) from None
        redactor = Redactor(secrets.values())
        with running.hidden(redactor.forms):
            return await self._ask(assignment, target, secrets, redactor)

    async def _ask(
        self, assignment: Assignment, target: HttpTarget, secrets: Mapping[str, str], redactor: Redactor
    ) -> dict[str, Any] | AcceptedByAgent:
        calling_back = {} if self.callback is None else await self.callback.headers(assignment.fire, secrets)
        request = build_request(assignment, target, secrets, calling_back)
        if problems := self._check_host(request.url.host.decode("ascii")):
            raise AttemptFailedError(str(problems[0]), is_permanent=True)
        # `from None` everywhere: the library's exceptions may contain what was sent.
        try:
            response = await self._pool.handle_async_request(request)
            try:
                answer = await read_answer(response, redactor)
            finally:
                await response.aclose()
        except InternalAddressError as error:
            raise AttemptFailedError(redactor.text(str(error)), is_permanent=True) from None
        except httpcore2.LocalProtocolError:
            raise AttemptFailedError(
                "the request can't be sent: HTTP can't carry it", is_permanent=True
            ) from None
        except _NETWORK_ERRORS as error:
            self._observer.notify(AgentFailed("none"))
            raise AttemptFailedError(redactor.text(_explain(error))) from None
        except asyncio.CancelledError as stopped:
            if TIMED_OUT in stopped.args:
                self._observer.notify(AgentFailed("timeout"))
            raise
        can_call_back = self.callback is not None
        try:
            return judge(answer, target.expected_status, self._clock.now(), can_call_back=can_call_back)
        except AttemptFailedError:
            self._observer.notify(AgentFailed(str(answer.status_code)))
            raise

    async def close(self) -> None:
        """Close all connections. No attempt may be running."""
        await self._pool.aclose()


def _check_references(target: HttpTarget) -> list[Problem]:
    parts = {"url": target.url, "body": target.body} | {
        f"headers/{name.replace('~', '~0')}": value for name, value in target.headers.items()
    }
    return [
        Problem(
            f"/target/{where}",
            "secret_name",
            f'"{name}" is not a name of a secret',
            "letters, digits, _ . and -, such as ${secret:agent_token}",
        )
        for where, part in parts.items()
        for name in sorted(references(part))
        if not NAME.match(name)
    ]


def _host_as_written(url: str) -> str:
    """Return the host part of a URL, unvalidated. The model has already refused users and invalid ports."""
    authority = url.partition("://")[2].partition("/")[0].partition("?")[0].partition("#")[0]
    if authority.startswith("["):
        return authority.partition("]")[0]
    return authority.partition(":")[0]


def _explain(error: Exception) -> str:
    is_connecting = isinstance(error, httpcore2.ConnectError | httpcore2.ConnectTimeout)
    what = "the agent can't be reached" if is_connecting else "the connection to the agent broke"
    return f"{what}: {str(error) or type(error).__name__}"
