"""Hints between processes over Redis, for databases that can't carry them.

Behind a transaction-pooling proxy, for example, there is no LISTEN. All instances publish and subscribe on
one channel. Its name contains the number of the Redis database, so that two clusters on one Redis need not
wake each other. Each step publishes a message to itself and waits for it: so it notices a subscription that
broke or that a firewall silently blocks. It then subscribes again and wakes all listeners. While Redis is
unreachable, hints are dropped, and polling replaces them.
"""

import asyncio
import contextlib
import secrets
from uuid import UUID

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from foliot.db.hints import HEALTH_CHECK_S, Hint, Listener, LocalHints, payloads_of, read_payload
from foliot.model.event import Observer
from foliot.model.instance_events import RedisFailed
from foliot.service import Wake

CALL_S = 2.0


class RedisHints:
    """Hints to this process and to all others on the same Redis. A service: run its `step`."""

    name = "hints"

    def __init__(self, url: str, observer: Observer) -> None:
        """The first step connects. Raises ValueError if `url` is not a Redis URL."""
        self.wake = Wake()
        self._observer = observer
        self._local = LocalHints()
        self._outgoing: dict[Hint, list[UUID]] = {}
        self._sender = secrets.token_hex(6)
        self._channel = f"foliot:hints:{parse_url(url).get('db', 0)}"
        never = Retry(NoBackoff(), 0)
        self._redis = Redis.from_url(
            url, socket_connect_timeout=CALL_S, socket_timeout=CALL_S, retry=never, client_name="foliot"
        )
        # No read timeout: a subscription may be silent for any time.
        self._followed = Redis.from_url(
            url, socket_connect_timeout=CALL_S, socket_timeout=None, retry=never, client_name="foliot"
        )
        self._subscription: PubSub | None = None
        self._reader: asyncio.Task[None] | None = None
        self._came_back = asyncio.Event()

    def listen(self, hint: Hint, listener: Listener) -> None:
        self._local.listen(hint, listener)

    def send(self, hint: Hint, ids: tuple[UUID, ...] = ()) -> None:
        self._local.send(hint, ids)
        self._outgoing.setdefault(hint, []).extend(ids)
        self.wake.set()

    async def step(self) -> float | None:
        # Take them first, so that they do not accumulate while Redis is unreachable.
        outgoing, self._outgoing = self._outgoing, {}
        try:
            async with asyncio.timeout(CALL_S):
                await self._subscribe()
                await self._publish(
                    [text for hint, ids in outgoing.items() for text in payloads_of(hint, ids)]
                )
        except (RedisError, OSError, TimeoutError) as error:
            await self._drop()
            self._observer.notify(RedisFailed("hints", f"{type(error).__name__}: {error}"))
            raise
        return HEALTH_CHECK_S

    async def close(self) -> None:
        await self._drop()
        for client in (self._redis, self._followed):
            with contextlib.suppress(RedisError, OSError):
                await client.aclose()

    async def _subscribe(self) -> None:
        if self._reader is not None and not self._reader.done():
            return
        await self._drop()
        self._subscription = self._followed.pubsub(ignore_subscribe_messages=True)
        await self._subscription.subscribe(self._channel)
        self._reader = asyncio.create_task(self._read(self._subscription), name="hints-reader")
        self._local.send_all()

    async def _publish(self, payloads: list[str]) -> None:
        """Publish the payloads and then an empty message. Return when the empty message has come back."""
        self._came_back.clear()
        async with self._redis.pipeline(transaction=False) as pipeline:
            for payload in (*payloads, ""):
                pipeline.publish(self._channel, f"{self._sender} {payload}")
            await pipeline.execute()
        await self._came_back.wait()

    async def _read(self, subscription: PubSub) -> None:
        try:
            async for message in subscription.listen():
                self._received(message["data"].decode(errors="replace"))
        except (RedisError, OSError):
            self.wake.set()  # the next step subscribes again

    def _received(self, text: str) -> None:
        sender, _, payload = text.partition(" ")
        if sender == self._sender:
            if not payload:
                self._came_back.set()
            return
        hint = read_payload(payload)
        if hint is not None:
            self._local.send(*hint)

    async def _drop(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with contextlib.suppress(RedisError, OSError):
                await subscription.aclose()  # type: ignore[no-untyped-call]
