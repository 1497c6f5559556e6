"""Commands of users and agents on schedules and executions, shared by the API, the SDK and code.

A command is written in one transaction, including its audit entry. Then a hint wakes the services that
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
from foliot.commands.agents import AgentCommands
from foliot.commands.apply import ApplyCommands
from foliot.commands.cluster import ClusterCommands
from foliot.commands.executions import ExecutionCommands
from foliot.commands.notifications import NotificationCommands
from foliot.commands.schedules import ScheduleCommands
from foliot.commands.shared import SharedCommands
from foliot.db.database import Database
from foliot.db.hints import Hints
from foliot.model.event import Observer
from foliot.timing.clock import ClusterClock


class Commands:
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
        self.schedules = ScheduleCommands(database, hints, observer, admission)
        self.apply = ApplyCommands(database, self.schedules, admission)
        self.executions = ExecutionCommands(database, hints, observer)
        self.shared = SharedCommands(database, hints)
        self.cluster = ClusterCommands(database, hints)
        self.notifications = NotificationCommands(database, hints, admission)
        self.agents = AgentCommands(database, hints, observer, clock)
