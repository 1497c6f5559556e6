"""Keys in etcd, through its JSON gateway (`/v3/…`, etcd 3.4 and later).

All keys of an owner belong to one etcd lease, so that one keepalive extends them all. A transaction creates a
key only if it does not exist, and deletes it only if it is ours.

etcd counts leases in whole seconds. It grants none shorter than 1.5 election timeouts (2 s by default),
checks twice a second for expired ones, and gives each a full new TTL when its own leader changes. So a key
may outlive its owner for longer than requested. A row that has become stale meanwhile is taken without the
key.
"""

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from foliot.scheduler.leases.etcd_gateway import EtcdGateway, EtcdRefusedError, encoded
from foliot.scheduler.leases.lease_provider import ProviderUnreachableError

NOT_FOUND = 5
"""gRPC code: the lease has expired."""
MAX_AT_ONCE = 100
"""Keys per transaction; etcd allows 128 operations by default."""


class EtcdLeases:
    name = "etcd"

    def __init__(self, addresses: str, owner: str, *, ttl_s: float, call_s: float) -> None:
        self._gateway = EtcdGateway(addresses, call_s=call_s)
        self.address = self._gateway.address
        self._owner = encoded(owner)
        self._ttl_s = math.ceil(ttl_s)
        self._lease: str | None = None

    async def acquire(self, key: str) -> bool:
        with _as_unreachable():
            for _ in range(2):
                lease = self._lease or await self._grant()
                try:
                    return await self._put(encoded(key), lease)
                except EtcdRefusedError as error:
                    if error.code != NOT_FOUND:
                        raise
                    # The lease has expired: retry with a new one.
                    self._forget(lease)
            return False

    async def extend(self, keys: Collection[str]) -> frozenset[str]:
        with _as_unreachable():
            lease = self._lease
            if not keys or lease is None:
                # This read needs a majority, so a node that is cut off can't answer it.
                await self._read([encoded("foliot")])
                return frozenset()
            kept = (await self._gateway.call("lease/keepalive", {"ID": lease})).get("result", {})
            if int(kept.get("TTL", 0)) <= 0:
                self._forget(lease)
                return frozenset()
            ours = []
            for some in _batches(sorted(keys)):
                found = await self._read([encoded(key) for key in some])
                ours += [key for key, kv in zip(some, found, strict=True) if self._is_ours(kv, lease)]
            return frozenset(ours)

    async def give_up(self, key: str) -> None:
        with _as_unreachable():
            await self._txn(
                [{"key": encoded(key), "target": "VALUE", "value": self._owner, "result": "EQUAL"}],
                [{"request_delete_range": {"key": encoded(key)}}],
            )

    async def close(self) -> None:
        if self._lease is not None:
            with contextlib.suppress(ProviderUnreachableError, EtcdRefusedError):
                await self._gateway.call("lease/revoke", {"ID": self._lease})
        await self._gateway.close()

    async def _grant(self) -> str:
        self._lease = str((await self._gateway.call("lease/grant", {"TTL": self._ttl_s}))["ID"])
        return self._lease

    def _forget(self, lease: str) -> None:
        if self._lease == lease:
            self._lease = None

    async def _put(self, key: str, lease: str) -> bool:
        answer = await self._txn(
            [{"key": key, "target": "CREATE", "create_revision": "0", "result": "EQUAL"}],
            [{"request_put": {"key": key, "value": self._owner, "lease": lease}}],
            [{"request_range": {"key": key}}],
        )
        # It is also ours if the reply to an earlier put was lost.
        return bool(answer.get("succeeded")) or self._is_ours(next(_ranges(answer), None), lease)

    async def _read(self, keys: Sequence[str]) -> list[Mapping[str, Any] | None]:
        return list(_ranges(await self._txn([], [{"request_range": {"key": key}} for key in keys])))

    async def _txn(
        self,
        compare: Sequence[Mapping[str, Any]],
        success: Sequence[Mapping[str, Any]],
        failure: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:
        body = {"compare": list(compare), "success": list(success), "failure": list(failure)}
        return await self._gateway.call("kv/txn", body)

    def _is_ours(self, found: Mapping[str, Any] | None, lease: str) -> bool:
        return found is not None and found["value"] == self._owner and found.get("lease") == lease


def _ranges(answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any] | None]:
    """Yield the result of each read of a transaction; None: the key does not exist."""
    for each in answer.get("responses", []):
        found = each["response_range"].get("kvs")
        yield found[0] if found else None


def _batches(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), MAX_AT_ONCE):
        yield keys[start : start + MAX_AT_ONCE]


@contextlib.contextmanager
def _as_unreachable() -> Iterator[None]:
    """Treat a refusal or a wrong answer as unreachable: the database then decides alone."""
    try:
        yield
    except EtcdRefusedError as error:
        raise ProviderUnreachableError(f"etcd refused: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ProviderUnreachableError("what answers there does not answer as etcd does") from error
