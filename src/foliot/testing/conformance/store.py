"""What every store must do: the parts of its contract, joined into one suite."""

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
    """Fixture: `scene`, a fresh store with its schema in place and one shard."""
