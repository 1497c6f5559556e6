"""Client for etcd's JSON gateway. Each call tries several endpoints until one answers."""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx2

from foliot.model.broker import shown
from foliot.model.errors import FoliotError
from foliot.scheduler.leases.lease_provider import ProviderUnreachableError

UNAUTHENTICATED = 16
"""gRPC code: the token has expired, or its node was restarted."""


class EtcdRefusedError(FoliotError):
    """etcd answered with an error."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        """gRPC status code."""


class EtcdGateway:
    """The endpoints of one etcd cluster, comma separated; any of them may contain user and password.

    The endpoint that answered last is tried first. Each endpoint gets a share of the timeout, so that one
    that accepts and never answers does not use up the time of the others.
    """

    def __init__(self, addresses: str, *, call_s: float) -> None:
        parts = [urlsplit(each.strip().rstrip("/")) for each in addresses.split(",")]
        self.address = shown(",".join(urlunsplit(each) for each in parts))
        self._credentials = next(
            ((unquote(each.username), unquote(each.password or "")) for each in parts if each.username), None
        )
        self._token: str | None = None
        self._endpoints = [
            urlunsplit((each.scheme, each.netloc.rpartition("@")[2], each.path, "", "")) for each in parts
        ]
        self._client = httpx2.AsyncClient(timeout=call_s / len(self._endpoints), trust_env=False)

    async def call(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Call the gateway. Raises EtcdRefusedError, or ProviderUnreachableError if no endpoint works.

        If a second endpoint was tried, the first may have executed the call too.
        """
        reasons = []
        for endpoint in list(self._endpoints):
            try:
                answer = await self._call_as_user(endpoint, path, body)
            except (httpx2.HTTPError, OSError, json.JSONDecodeError) as error:
                reasons.append(str(error) or type(error).__name__)
            else:
                if endpoint != self._endpoints[0]:
                    self._endpoints.remove(endpoint)
                    self._endpoints.insert(0, endpoint)
                return answer
        detail = "; ".join(dict.fromkeys(reasons))
        raise ProviderUnreachableError(f"etcd at {self.address} can't be reached: {detail}")

    async def close(self) -> None:
        await self._client.aclose()

    async def _call_as_user(self, endpoint: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if self._credentials is None:
            return await self._post(endpoint, path, body)
        if self._token is not None:
            try:
                return await self._post(endpoint, path, body)
            except EtcdRefusedError as error:
                if error.code != UNAUTHENTICATED:
                    raise
                self._token = None
        name, password = self._credentials
        granted = await self._post(endpoint, "auth/authenticate", {"name": name, "password": password})
        self._token = str(granted["token"])
        return await self._post(endpoint, path, body)

    async def _post(self, endpoint: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        headers = {} if self._token is None else {"Authorization": self._token}
        response = await self._client.post(f"{endpoint}/v3/{path}", json=body, headers=headers)
        if response.status_code >= httpx2.codes.INTERNAL_SERVER_ERROR:
            # The node has no leader, is overloaded, or stops: another node may work.
            raise httpx2.HTTPError(
                f"{endpoint} answered {response.status_code}: {response.text[:200].strip()}"
            )
        answer: dict[str, Any] = response.json()
        if response.status_code != httpx2.codes.OK:
            raise EtcdRefusedError(int(answer.get("code", 0)), str(answer.get("error", response.status_code)))
        return answer


def encoded(text: str) -> str:
    """Encode as base64, which the gateway uses for keys and values."""
    return b64encode(text.encode()).decode()
