"""Metrics of the database connection pools, read at each scrape."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy.pool import QueuePool

from foliot.db.database import Database
from foliot.db.dialect import Pool

REPLICA = "replica"


class PoolCollector(Collector):
    """Exports each pool's connections in use and its size."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def collect(self) -> Iterator[GaugeMetricFamily]:
        in_use = GaugeMetricFamily(
            "foliot_db_pool_in_use", "Connections to the database in use", labels=["pool"]
        )
        size = GaugeMetricFamily(
            "foliot_db_pool_size", "How many connections there may be at once", labels=["pool"]
        )
        for name, pool in self._pools():
            in_use.add_metric([name], pool.checkedout())
            size.add_metric([name], pool.size())
        yield in_use
        yield size

    def _pools(self) -> Iterator[tuple[str, QueuePool]]:
        for name, database, pools in (
            ("", self._database, tuple(Pool)),
            (REPLICA, self._database.replica, (Pool.API,)),
        ):
            if database is None:
                continue
            for pool in pools:
                found = database.engine(pool).pool
                assert isinstance(found, QueuePool)
                yield name or pool.value, found
