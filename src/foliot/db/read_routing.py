"""Selects the primary or the replica for reads, when the database has a replica.

The default is the primary. So code that decides, writes or checks credentials needs no setting. Only an
answer that may be slightly stale is read from the replica, and then with all its statements. That is why the
source is set once around the work, and not per statement.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum


class Source(StrEnum):
    PRIMARY = "primary"
    REPLICA = "replica"


_source: ContextVar[Source] = ContextVar("foliot_source", default=Source.PRIMARY)


def source() -> Source:
    """Return the source of the API's reads in this context."""
    return _source.get()


@contextmanager
def reading_from(wanted: Source) -> Iterator[None]:
    """Read from this source inside the `with` block (API reads only)."""
    token = _source.set(wanted)
    try:
        yield
    finally:
        _source.reset(token)
