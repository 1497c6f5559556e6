"""Which answers may come from a replica, and how reading goes on while a server is away.

Lists and history may be a moment old: they come from the replica, unless it is away or too far behind. One
thing by its id, and whoever asks, are looked up at the primary: what was written a moment ago is there. What
the replica does not know yet is asked of the primary before anybody is told that it does not exist.

A request that only reads and meets a server that is away is begun again with the other. With the primary away
all of it comes from the replica, the credential included, and the answer says that it is stale: a key that
was revoked in the last moment may still read then. Writing needs the primary, and is told to come back.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from fastapi import Request, Response

from foliot.model.errors import DatabaseUnreachableError, FoliotError, NotFoundError
from foliot.store.reading import Source, reading_from
from foliot.store.replica import ReplicaStanding, ReplicaWatch

STALE_HEADER = "X-Foliot-Stale"
STATUS_LAG_S = 1.0
"""Behind by more, it would show leaders as late that are not."""

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
"""What may be a moment old."""

Handle = Callable[[Request], Awaitable[Response]]
Admit = Callable[[Handle], Awaitable[Response]]


class Way(NamedTuple):
    """Where a request is answered from."""

    caller: Source
    """Who asks, and whether they may."""
    answer: Source


AT_PRIMARY = Way(Source.PRIMARY, Source.PRIMARY)
LISTED = Way(Source.PRIMARY, Source.REPLICA)
AT_REPLICA = Way(Source.REPLICA, Source.REPLICA)


def ways(standing: ReplicaStanding, most_lag_s: float, *, is_list: bool) -> tuple[Way, ...]:
    """What to try, in this order."""
    if standing.is_replica_away:
        return (AT_PRIMARY,)
    if standing.is_primary_away:
        return (AT_REPLICA, AT_PRIMARY)
    is_near = standing.lag_s is None or standing.lag_s <= most_lag_s
    return (LISTED, AT_PRIMARY, AT_REPLICA) if is_list and is_near else (AT_PRIMARY, AT_REPLICA)


class Reads:
    """Answers requests that only read."""

    def __init__(self, watch: ReplicaWatch | None) -> None:
        """None: there is no replica."""
        self._watch = watch

    async def answer(self, path: str, admit: Admit, handle: Handle) -> Response:
        """`path` is the route's; `admit` lets the request through to what it is given."""
        if self._watch is None:
            return await admit(handle)
        most_lag_s = min(self._watch.most_lag_s, STATUS_LAG_S) if path == _STATUS else self._watch.most_lag_s
        failure: FoliotError | None = None
        for way in ways(self._watch.standing, most_lag_s, is_list=path in LISTS):
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
