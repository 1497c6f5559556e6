"""What an instance is to be: its settings, its roles, and what an application has registered with it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from foliot.model.broker import ADDRESSES
from foliot.model.errors import SettingError
from foliot.model.event import Observer
from foliot.model.schedule import ScheduleSpec
from foliot.outbox.handling import ConsumerSpec
from foliot.settings import Settings
from foliot.target.function import TaskRegistry
from foliot.timing.clock import Clock, SystemClock
from foliot.transport.pace import TransportPace


class InstanceRole(StrEnum):
    API = "api"
    SCHEDULER = "scheduler"
    WORKER = "worker"
    RELAY = "relay"


ENGINE = frozenset({InstanceRole.SCHEDULER, InstanceRole.WORKER})
"""What an application that embeds Foliot runs."""


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """What an instance is to be."""

    settings: Settings
    roles: frozenset[InstanceRole] = ENGINE
    tasks: TaskRegistry = field(default_factory=TaskRegistry)
    schedules: Sequence[ScheduleSpec] = ()
    """Declared by code: created or brought up to date when the instance starts."""
    queues: Sequence[str] | None = None
    """What a worker serves; None: every queue."""
    consumers: Sequence[ConsumerSpec] = ()
    """Handlers of events, which a worker runs."""
    celery: Any = None
    """A Celery application in whose process the instance runs; FOLIOT_CELERY_APP goes before it."""
    upgrades_schema: bool = False
    """Bring the schema up to date at the start."""
    creates_schema: bool = False
    """Make the schema in an empty database, and leave one that exists as it is."""
    isolates: bool = True
    """Whether sync functions run in processes of their own; else in threads."""
    is_own_process: bool = False
    """Whether the process is there for this instance alone: then its limits are the process's."""
    observers: Sequence[Observer] = ()
    clock: Clock = field(default_factory=SystemClock)
    transport_pace: TransportPace = field(default_factory=TransportPace)


def possible_roles(plan: InstanceSpec) -> frozenset[InstanceRole]:
    """A process of several roles is a relay only where it is told what to ship to."""
    if plan.settings.relay is not None or InstanceRole.RELAY not in plan.roles:
        return plan.roles
    if len(plan.roles) == 1:
        raise SettingError(f"FOLIOT_RELAY is not set; right would be {ADDRESSES}")
    return plan.roles - {InstanceRole.RELAY}
