"""Forgetting what access leaves behind: sessions that are over, old idempotency keys, old audit records.

Also the secrets that were sent with executions that have ended.
"""

from foliot.service import Wake
from foliot.store.sql import SqlStore

EVERY_S = 300.0
AGAIN_S = 1.0
MAX_ROWS = 1000


class Tidy:
    """A service. Any number of instances may do this at once: what is gone is gone."""

    name = "tidy"

    def __init__(self, store: SqlStore, retention_s: float) -> None:
        self.wake = Wake()
        self._store = store
        self._retention_s = retention_s

    async def step(self) -> float | None:
        removed = (
            await self._store.sessions.prune(limit=MAX_ROWS),
            await self._store.idempotency.prune(limit=MAX_ROWS),
            await self._store.agents.prune_sent(limit=MAX_ROWS),
            await self._store.audit.prune(older_than_s=self._retention_s, limit=MAX_ROWS),
        )
        return AGAIN_S if MAX_ROWS in removed else EVERY_S
