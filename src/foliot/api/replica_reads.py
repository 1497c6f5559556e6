"""Reads from a replica, and failover of reads while a database server is unreachable.

Lists and history may be slightly out of date: they come from the replica, unless it is unreachable or lags
too far behind. Single resources and credentials come from the primary, so that recent writes are visible. If
the replica does not find something, the primary is asked before a 404 is returned.

A read request that fails because one server is unreachable is repeated with the other. While the primary is
unreachable, everything comes from the replica, including credentials, and the response is marked as stale.
A key that was revoked a moment before may then still read. Writes need the primary, and get a 503 meanwhile.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from fastapi import Request, Response

from foliot.db.read_routing import Source, reading_from
from foliot.db.replica import ReplicaState, ReplicaWatch
from foliot.model.errors import DatabaseUnreachableError, FoliotError, NotFoundError

STALE_HEADER = "X-Foliot-Stale"
STATUS_LAG_S = 1.0
"""Maximum lag for `status`. With a larger lag, leaders would wrongly appear late."""

_V1 = "/api/v1"
_STATUS = f"{_V1}/status"
LISTS = frozenset(
    {
        f"{_V1}/schedules",
        f"{_V1}/schedules/{{schedule_id}}/backfills",
        f"{_V1}/schedules/{{schedule_id}}/executions",
        f"{_V1}/schedules/{{schedule_id}}/fires",
        f"{_V1}/schedules/{{schedule_id}}/stats",
        f"{_V1}/schedules/{{schedule_id}}/versions",
        f"{_V1}/executions",
        f"{_V1}/audit",
        f"{_V1}/events",
        f"{_V1}/load",
        f"{_V1}/timeline",
        _STATUS,
    }
)
"""Routes whose responses may be slightly out of date."""

Handle = Callable[[Request], Awaitable[Response]]
Admit = Callable[[Handle], Awaitable[Response]]


class ReadServer(NamedTuple):
    """Which server a request reads from."""

    caller: Source
    """The server to check the credential with."""
    answer: Source


AT_PRIMARY = ReadServer(Source.PRIMARY, Source.PRIMARY)
LISTED = ReadServer(Source.PRIMARY, Source.REPLICA)
AT_REPLICA = ReadServer(Source.REPLICA, Source.REPLICA)


def ways(standing: ReplicaState, max_lag_s: float, *, is_list: bool) -> tuple[ReadServer, ...]:
    """Return the ways to try, in order."""
    if standing.is_replica_away:
        return (AT_PRIMARY,)
    if standing.is_primary_away:
        return (AT_REPLICA, AT_PRIMARY)
    is_near = standing.lag_s is None or standing.lag_s <= max_lag_s
    return (LISTED, AT_PRIMARY, AT_REPLICA) if is_list and is_near else (AT_PRIMARY, AT_REPLICA)


class Reads:
    """Runs read requests, with failover between primary and replica."""

    def __init__(self, watch: ReplicaWatch | None) -> None:
        """`watch` is None if there is no replica."""
        self._watch = watch

    async def answer(self, path: str, admit: Admit, handle: Handle) -> Response:
        """Run a read request. `path` is the route's; `admit` runs the gate's checks, then a handler."""
        if self._watch is None:
            return await admit(handle)
        max_lag_s = min(self._watch.max_lag_s, STATUS_LAG_S) if path == _STATUS else self._watch.max_lag_s
        failure: FoliotError | None = None
        for way in ways(self._watch.standing, max_lag_s, is_list=path in LISTS):
            try:
                with reading_from(way.caller):
                    response = await admit(_reading(way.answer, handle))
            except DatabaseUnreachableError as error:
                failure = error
                self._watch.doubt(is_primary=way is AT_PRIMARY)
            except NotFoundError as error:
                if way.answer is Source.PRIMARY:
                    raise
                failure = error
            else:
                if way.answer is Source.REPLICA and self._watch.standing.is_primary_away:
                    response.headers[STALE_HEADER] = "true"
                return response
        assert failure is not None
        raise failure


def _reading(source: Source, handle: Handle) -> Handle:
    async def read(request: Request) -> Response:
        with reading_from(source):
            return await handle(request)

    return read
