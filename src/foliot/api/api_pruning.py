"""Deletes expired sessions, old idempotency keys, old audit records, and secrets stored with attempts.

The secrets stored with an attempt are deleted after its execution has ended.
"""

from foliot.access.audit import Audit
from foliot.access.idempotency_sql import IdempotencyKeys
from foliot.access.sessions import Sessions
from foliot.commands.agents_sql import Agents
from foliot.db.database import Database
from foliot.service import Wake

EVERY_S = 300.0
AGAIN_S = 1.0
MAX_ROWS = 1000


class ApiPruner:
    """The cleanup service. Any number of instances may run it at once, because deletes can be repeated."""

    name = "tidy"

    def __init__(self, database: Database, retention_s: float) -> None:
        self.wake = Wake()
        self._sessions = Sessions(database)
        self._idempotency = IdempotencyKeys(database)
        self._agents = Agents(database)
        self._audit = Audit(database)
        self._retention_s = retention_s

    async def step(self) -> float | None:
        removed = (
            await self._sessions.prune(limit=MAX_ROWS),
            await self._idempotency.prune(limit=MAX_ROWS),
            await self._agents.prune_sent(limit=MAX_ROWS),
            await self._audit.prune(older_than_s=self._retention_s, limit=MAX_ROWS),
        )
        return AGAIN_S if MAX_ROWS in removed else EVERY_S
