"""The store's contract over both databases, and what each of them promises besides."""

from foliot.testing.conformance.store import StoreConformance


class TestStore(StoreConformance):
    """Every part of the contract, on SQLite and on PostgreSQL."""
