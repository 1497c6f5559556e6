"""Conformance suite for stores, composed of the suites for its parts."""

from tests.conformance.suites.store_changes import ChangesConformance
from tests.conformance.suites.store_fence import FenceConformance
from tests.conformance.suites.store_firing import FiringConformance
from tests.conformance.suites.store_loading import LoadingConformance
from tests.conformance.suites.store_overlap import OverlapConformance
from tests.conformance.suites.store_registry import RegistryConformance
from tests.conformance.suites.store_upkeep import UpkeepConformance
from tests.conformance.suites.store_work import WorkConformance


class StoreConformance(
    FenceConformance,
    LoadingConformance,
    FiringConformance,
    OverlapConformance,
    WorkConformance,
    UpkeepConformance,
    ChangesConformance,
    RegistryConformance,
):
    """All tests for a store. Fixture: `scene`, a new store with its schema and one shard."""
