"""Publishes events to Redis: one stream per topic.

A script adds the messages. It first compares the relay's epoch with the highest that ever began, so a
replaced relay adds nothing more. A script runs atomically and in order.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from foliot.brokers.broker_address import read_address
from foliot.model.errors import BrokerUnreachableError
from foliot.outbox.message_format import BrokerMessage, cut, pack
from foliot.outbox.ordered_sending import CALL_S, asking
from foliot.outbox.publisher import SETTING, BrokerRefusedError, RelayTerm, TermOverError
from foliot.queries.outbox_list import OutboxMessage

STREAM = "foliot:events:"
FENCE = "foliot:relay:"
REFUSALS = ("WRONGTYPE", "NOPERM")
"""Error prefixes for: the key is of another type, or not ours to write. Then the topic is refused."""
MAX_MESSAGES = 100
MAX_BYTES = 1_000_000
"""Maximum bytes per script: Redis does nothing else while it runs."""

_BEGIN = """
local seen = tonumber(redis.call('GET', KEYS[1]) or '0')
if seen > tonumber(ARGV[1]) then return seen end
redis.call('SET', KEYS[1], ARGV[1])
return tonumber(ARGV[1])
"""
# A script that fails midway keeps what it has done, so it returns how far it came.
_ADD = """
local seen = tonumber(redis.call('GET', KEYS[1]) or '0')
if seen ~= tonumber(ARGV[1]) then return {-1, tostring(seen)} end
local at = 3
for number = 2, #KEYS do
  local fields = tonumber(ARGV[at])
  local command = {'XADD', KEYS[number]}
  if ARGV[2] ~= '0' then
    command[3], command[4], command[5] = 'MAXLEN', '~', ARGV[2]
  end
  command[#command + 1] = '*'
  for field = at + 1, at + fields do command[#command + 1] = ARGV[field] end
  local added = redis.pcall(unpack(command))
  if type(added) == 'table' and added.err then return {number - 2, added.err} end
  at = at + fields + 1
end
return {#KEYS - 1, ''}
"""


class RedisPublisher:
    """Publishes to Redis Streams. `?maxlen=N` keeps about N messages per stream; without it, all."""

    name = "redis"

    def __init__(self, address: str, *, call_s: float = CALL_S) -> None:
        self._call_s = call_s
        read = read_address(address, SETTING, "maxlen")
        self._address = read.url
        self._longest = read.number("maxlen") or 0
        self._redis: Redis | None = None
        self._term: RelayTerm | None = None

    async def begin(self, term: RelayTerm) -> None:
        await self.close()
        # No retries by the client: they would be invisible here. The relay retries itself.
        never = Retry(NoBackoff(), 0)
        self._redis = Redis.from_url(
            self._address, socket_timeout=self._call_s, socket_connect_timeout=self._call_s, retry=never
        )
        seen = int(await self._run(_BEGIN, [self._fence(term)], [term.epoch]))
        if seen != term.epoch:
            raise TermOverError(self.name, term.epoch, seen)
        self._term = term

    async def publish(self, messages: Sequence[OutboxMessage], is_trusted: Callable[[], bool]) -> int:
        added = 0
        for packed in cut([pack(message) for message in messages], MAX_MESSAGES, MAX_BYTES):
            if not is_trusted():
                break
            try:
                added += await self._add(packed)
            except BrokerUnreachableError:
                if not added:
                    raise
                break
        return added

    async def _add(self, messages: Sequence[BrokerMessage]) -> int:
        term = self._term
        if term is None:
            raise BrokerUnreachableError("redis: not connected")
        arguments: list[Any] = [term.epoch, self._longest]
        for message in messages:
            fields = [part for pair in message.headers.items() for part in pair]
            arguments += [len(fields) + 2, *fields, "event", message.body]
        keys = [self._fence(term), *(STREAM + message.topic for message in messages)]
        added, reason = await self._run(_ADD, keys, arguments)
        if added < 0:
            raise TermOverError(self.name, term.epoch, int(reason))
        if not added:
            said = reason.decode(errors="replace")
            if said.startswith(REFUSALS):
                raise BrokerRefusedError(f"redis: {said}", is_topic=True, topic=messages[0].topic)
            raise BrokerUnreachableError(f"redis: {said}")
        return int(added)

    async def _run(self, script: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        assert self._redis is not None
        async with asking(self.name, RedisError, OSError, call_s=self._call_s):
            return await self._redis.register_script(script)(keys=keys, args=arguments)

    @staticmethod
    def _fence(term: RelayTerm) -> str:
        return FENCE + term.outbox

    async def close(self) -> None:
        redis, self._redis, self._term = self._redis, None, None
        if redis is not None:
            with suppress(BrokerUnreachableError):
                async with asking(self.name, RedisError, OSError, call_s=self._call_s):
                    await redis.aclose()
