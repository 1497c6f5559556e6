"""What all consumers do besides handling: report that they run, manage claims, replay dead letters."""

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from foliot.model.errors import FoliotError, NotFoundError
from foliot.outbox.claims_sql import ConsumerClaim
from foliot.outbox.consumers_sql import Consumers
from foliot.outbox.dead_letters import DeadLetters
from foliot.outbox.handler_calls import HandlerFailure, PendingTransaction
from foliot.outbox.handlers import ConsumerSpec
from foliot.timing.clock import Clock

SEEN_EVERY_S = 30.0
REPLAY_EVERY_S = 1.0
MAX_REPLAYS = 10
"""Maximum number of requested dead letters that are replayed per step."""


class ConsumerRegistration:
    """A consumer's registration in the database: its claim, its group's last-seen time, requested replays."""

    def __init__(self, spec: ConsumerSpec, consumers: Consumers, clock: Clock) -> None:
        self.owner = secrets.token_hex(8)
        self._spec = spec
        self._consumers = consumers
        self._clock = clock
        self._letters = DeadLetters(spec, consumers.dead_letters, consumers, clock)
        self._unfinished: ConsumerClaim | None = None
        self._seen_at = float("-inf")
        self._replayed_at = float("-inf")

    async def keep(self) -> None:
        """Prepare for a batch: withdraw an unfinished claim, report that the group runs, replay dead
        letters."""
        await self.take_back()
        now = self._clock.monotonic()
        if now - self._seen_at >= SEEN_EVERY_S:
            await self._consumers.see(self._spec.group, "database" if self._spec.is_of_database else "kafka")
            self._seen_at = now
        if now - self._replayed_at >= REPLAY_EVERY_S:
            self._replayed_at = now
            wanted = await self._consumers.dead_letters.take_requested(self._spec.group, limit=MAX_REPLAYS)
            for dead_letter_id in wanted:
                with suppress(NotFoundError):
                    await self._letters.replay(dead_letter_id)

    @asynccontextmanager
    async def handling(self, claim: ConsumerClaim) -> AsyncIterator[None]:
        """Hold a claim while a batch is handled. On failure it is withdrawn; if the process dies, it
        stays."""
        self._unfinished = claim
        try:
            yield
        except BaseException:
            with suppress(FoliotError):  # otherwise it is withdrawn before the next batch
                await self.take_back()
            raise
        self._unfinished = None

    async def close(self) -> None:
        with suppress(FoliotError):
            await self.take_back()

    async def take_back(self) -> None:
        """Withdraw an unfinished claim, and the crash that another consumer may have counted for it."""
        if self._unfinished is not None:
            await self._consumers.claims.take_back(self._spec.group, self._unfinished, self.owner)
            self._unfinished = None


def give_up_crashed(
    waiting: Sequence[PendingTransaction], claim: ConsumerClaim, max_attempts: int
) -> Sequence[PendingTransaction]:
    """Mark the first transaction as failed if processes have died of it as often as it may be tried."""
    if claim.crashes < max_attempts or not waiting:
        return waiting
    failure = HandlerFailure(f"the process ended while it handled the event, {claim.crashes} times", None)
    return [waiting[0]._replace(failure=failure, attempts=claim.crashes), *waiting[1:]]
