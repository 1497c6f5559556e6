"""Commands on the cluster: drain an instance, change the number of shards."""

from foliot.db.database import Database
from foliot.db.hints import Hint, Hints
from foliot.planning.change import Author
from foliot.queries.registry_list import RegistryList
from foliot.scheduler.leases.leases_sql import Leases


class ClusterCommands:
    def __init__(self, database: Database, hints: Hints) -> None:
        self._registry_list = RegistryList(database)
        self._leases = Leases(database)
        self._hints = hints

    async def drain(self, instance_id: str, author: Author, *, is_draining: bool = True) -> None:
        """Drain an instance, so that it takes no new work, or end draining. Raises NotFoundError."""
        await self._registry_list.set_draining(instance_id, is_draining, author)
        self._hints.send(Hint.INSTANCE)

    async def reshard(self, count: int, author: Author) -> int:
        """Change the number of shards of the running cluster. Return the previous number."""
        before = await self._leases.reshard(count, author)
        self._hints.send(Hint.LEASE)
        return before
