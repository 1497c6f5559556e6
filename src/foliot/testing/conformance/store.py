"""Conformance suite for stores, composed of the suites for its parts."""

from foliot.testing.conformance.store_changes import ChangesConformance
from foliot.testing.conformance.store_fence import FenceConformance
from foliot.testing.conformance.store_firing import FiringConformance
from foliot.testing.conformance.store_loading import LoadingConformance
from foliot.testing.conformance.store_overlap import OverlapConformance
from foliot.testing.conformance.store_registry import RegistryConformance
from foliot.testing.conformance.store_upkeep import UpkeepConformance
from foliot.testing.conformance.store_work import WorkConformance


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
