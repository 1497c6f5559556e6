"""What is checked and set up before an instance runs."""

import gc

from foliot.access.keys_sql import ApiKeys
from foliot.db.database import Database
from foliot.db.migrate import require_schema, schema_status, upgrade
from foliot.instance.spec import InstanceSpec
from foliot.model.errors import FoliotError, SettingError


class OutgrownError(FoliotError):
    """The worker passed its memory limit. It finished its executions and ended, and must be restarted."""

    def __init__(self, limit: str) -> None:
        super().__init__(
            f"the worker had grown past its memory limit ({limit}): it has finished what ran, start it anew"
        )


async def prepare_schema(database: Database, plan: InstanceSpec) -> None:
    """Create or upgrade the schema if the instance may. Raises if it is not the right one afterwards."""
    is_wanted = plan.upgrades_schema
    if plan.creates_schema and not is_wanted:
        is_wanted = (await schema_status(database)).current is None
    if is_wanted:
        await upgrade(database, shards=plan.settings.shards)
    await require_schema(database, advice=", or start with upgrade=True" if plan.creates_schema else "")


async def require_key(keys: ApiKeys) -> None:
    """Raise SettingError if nobody could use the API."""
    if not await keys.any_exist():
        raise SettingError(
            "FOLIOT_ADMIN_KEY is not set and there is no key yet, so nobody could use the API: "
            "set it to 32 random characters or more"
        )


def spare_collector() -> None:
    """Make the cyclic garbage collector run less often. Only for a process that is Foliot's own.

    A leader holds hundreds of thousands of small tuples and creates thousands a second, none of them in
    cycles. With default thresholds the collector scans them again and again: 15 % of the time of firing, and
    pauses of half a second with half a million schedules in memory.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
