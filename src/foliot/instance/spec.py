"""Specification of an instance: its settings, its roles, and what an application registered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from foliot.instance.settings import Settings
from foliot.kinds.function_target import TaskRegistry
from foliot.model.broker import ADDRESSES
from foliot.model.errors import SettingError
from foliot.model.event import Observer
from foliot.model.schedule import ScheduleSpec
from foliot.outbox.handlers import ConsumerSpec
from foliot.timing.clock import Clock, SystemClock
from foliot.transport.intervals import TransportIntervals


class InstanceRole(StrEnum):
    API = "api"
    SCHEDULER = "scheduler"
    WORKER = "worker"
    RELAY = "relay"


ENGINE = frozenset({InstanceRole.SCHEDULER, InstanceRole.WORKER})
"""The roles that an application with embedded Foliot runs."""


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """Everything that an instance is built from."""

    settings: Settings
    roles: frozenset[InstanceRole] = ENGINE
    tasks: TaskRegistry = field(default_factory=TaskRegistry)
    schedules: Sequence[ScheduleSpec] = ()
    """Schedules declared by code: created or updated when the instance starts."""
    queues: Sequence[str] | None = None
    """The queues that a worker serves; None: every queue."""
    consumers: Sequence[ConsumerSpec] = ()
    """Event handlers, which a worker runs."""
    celery: Any = None
    """The Celery application in whose process the instance runs; FOLIOT_CELERY_APP takes precedence."""
    upgrades_schema: bool = False
    """Whether to upgrade the schema at the start."""
    creates_schema: bool = False
    """Whether to create the schema in an empty database; an existing schema is left as it is."""
    isolates: bool = True
    """Whether sync functions run in separate processes; False: in threads."""
    is_own_process: bool = False
    """Whether the process runs only this instance. Then the worker's limits apply to the process."""
    observers: Sequence[Observer] = ()
    clock: Clock = field(default_factory=SystemClock)
    transport_pace: TransportIntervals = field(default_factory=TransportIntervals)


def possible_roles(plan: InstanceSpec) -> frozenset[InstanceRole]:
    """Return the roles that can run. An instance with several roles drops `relay` if FOLIOT_RELAY is unset.

    Raises SettingError if `relay` is the only role.
    """
    if plan.settings.relay is not None or InstanceRole.RELAY not in plan.roles:
        return plan.roles
    if len(plan.roles) == 1:
        raise SettingError(f"FOLIOT_RELAY is not set; right would be {ADDRESSES}")
    return plan.roles - {InstanceRole.RELAY}
