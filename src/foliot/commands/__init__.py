"""Commands of users and agents on schedules and executions, shared by the API, the SDK and code.

The store writes a command in one transaction, including its audit entry. Then a hint wakes the services that
wait for it, and observers are notified. A crash in between loses only the hint and the notification: the
services find the change at their next poll.

    schedules.py    create, edit, restore, pause, resume, delete, trigger, backfill
    apply.py        synchronise schedules with files
    bulk.py         run one command on many items
    executions.py   cancel, retry
    shared.py       change queues and calendars, which schedules share
    cluster.py      drain an instance, change the number of shards
    agents.py       accept progress and results from agents
    notifications.py  notification rules, test messages, sending again
    admission.py    check whether a target can run, as far as this process and the database know
"""

from foliot.commands.admission import DefinitionChecker
from foliot.commands.agents import AgentSteering
from foliot.commands.apply import ApplySteering
from foliot.commands.cluster import ClusterSteering
from foliot.commands.executions import ExecutionSteering
from foliot.commands.notifications import NotificationSteering
from foliot.commands.schedules import ScheduleSteering
from foliot.commands.shared import SharedSteering
from foliot.db.database import Database
from foliot.db.hints import Hints
from foliot.model.event import Observer
from foliot.timing.clock import ClusterClock


class Steering:
    """All commands, over one database."""

    def __init__(
        self,
        database: Database,
        hints: Hints,
        observer: Observer,
        clock: ClusterClock,
        *,
        admission: DefinitionChecker | None = None,
    ) -> None:
        admission = admission or DefinitionChecker(database)
        self.schedules = ScheduleSteering(database, hints, observer, admission)
        self.apply = ApplySteering(database, self.schedules, admission)
        self.executions = ExecutionSteering(database, hints, observer)
        self.shared = SharedSteering(database, hints)
        self.cluster = ClusterSteering(database, hints)
        self.notifications = NotificationSteering(database, hints, admission)
        self.agents = AgentSteering(database, hints, observer, clock)
