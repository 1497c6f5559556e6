"""Metrics of the process: version, memory, CPU, open files and garbage collections."""

from prometheus_client import CollectorRegistry, GCCollector, Info, PlatformCollector, ProcessCollector

from foliot.version import __version__


def add_process(registry: CollectorRegistry) -> None:
    """Add the process metrics to a registry. They are read at each scrape."""
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    Info("foliot_build", "Which version of Foliot this is", registry=registry).info({"version": __version__})
