"""What one wants to know of any process: its version, memory, CPU, open files, garbage collections."""

from prometheus_client import CollectorRegistry, GCCollector, Info, PlatformCollector, ProcessCollector

from foliot.version import __version__


def add_process(registry: CollectorRegistry) -> None:
    """Show them in this registry; they are read when somebody asks."""
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    Info("foliot_build", "Which version of Foliot this is", registry=registry).info({"version": __version__})
