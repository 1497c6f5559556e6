"""What people and agents do to schedules and executions: each act once, for the API, the SDK and the code.

An act is written by the store in one transaction, audit included; then the parts that wait for it are hinted
at, and observers are told. A crash between the two costs a poll interval, never the act.

    schedules.py    create, edit, restore, pause, resume, delete, trigger, backfill
    apply.py        keep in step with files
    bulk.py         one act on many
    executions.py   cancel, retry
    shared.py       what schedules share: queues, calendars
    cluster.py      drain an instance, change the number of shards
    agents.py       what an agent that took over an execution says of it
    notifications.py  whom to tell of what, and messages by hand
    admission.py    whether a target can be carried out, as far as this process and the database know
"""

from foliot.model.event import Observer
from foliot.steering.admission import DefinitionChecker
from foliot.steering.agents import AgentSteering
from foliot.steering.apply import ApplySteering
from foliot.steering.cluster import ClusterSteering
from foliot.steering.executions import ExecutionSteering
from foliot.steering.notifications import NotificationSteering
from foliot.steering.schedules import ScheduleSteering
from foliot.steering.shared import SharedSteering
from foliot.store.hints import Hints
from foliot.store.sql import SqlStore
from foliot.timing.clock import ClusterClock


class Steering:
    """All acts, over one store."""

    def __init__(
        self,
        store: SqlStore,
        hints: Hints,
        observer: Observer,
        clock: ClusterClock,
        *,
        admission: DefinitionChecker | None = None,
    ) -> None:
        admission = admission or DefinitionChecker(store)
        self.schedules = ScheduleSteering(store, hints, observer, admission)
        self.apply = ApplySteering(store, self.schedules, admission)
        self.executions = ExecutionSteering(store, hints, observer)
        self.shared = SharedSteering(store, hints)
        self.cluster = ClusterSteering(store, hints)
        self.notifications = NotificationSteering(store, hints, admission)
        self.agents = AgentSteering(store, hints, observer, clock)
