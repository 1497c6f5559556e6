"""Where a read goes when the database has a replica.

Whoever decides, writes or checks a credential reads from the primary, and need not know of this: that is so
unless somebody says otherwise. Only an answer that may be a moment old is read from the replica, and then all
of it, down to the last statement: so it is said once, around the work, and not at each of them.
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
    """Where the API's reads go at this moment."""
    return _source.get()


@contextmanager
def reading_from(wanted: Source) -> Iterator[None]:
    """Let the API's reads within go there."""
    token = _source.set(wanted)
    try:
        yield
    finally:
        _source.reset(token)
