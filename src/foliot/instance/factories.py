"""Factories for the parts of an instance.

`runtime` decides which parts an instance has, and starts and stops them.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from foliot.brokers.celery_app import CeleryApp, load_celery
from foliot.db.hints import Hints, SharedHints
from foliot.db.opening import open_hints
from foliot.db.replica import ReplicaWatch
from foliot.instance.settings import Settings
from foliot.instance.spec import ENGINE, InstanceRole, InstanceSpec
from foliot.instance.store import SqlStore
from foliot.kinds.target_protocol import TargetRunner, available_targets
from foliot.model.broker import BrokerKind
from foliot.model.errors import SettingError
from foliot.model.event import Observer
from foliot.model.lease import Shard
from foliot.model.policy import Priority
from foliot.model.trace import Sampling
from foliot.notifications.delivery import Sender
from foliot.notifications.notifier import Notifier, NotifierOptions
from foliot.notifications.sender import MessageSender
from foliot.outbox.consumers import EventConsumer, open_consumer
from foliot.outbox.open_publisher import open_publisher
from foliot.outbox.relay import Relay, RelayOptions
from foliot.scheduler.dispatch.outgoing import Outgoing
from foliot.scheduler.leases.leadership import Leadership
from foliot.scheduler.leases.open_lease import LeaseOptions, open_leases
from foliot.scheduler.leases.second_witness import Witness
from foliot.scheduler.measures import MeasureService
from foliot.scheduler.measures_sql import Measures
from foliot.scheduler.scheduler import Scheduler, SharingIntervals
from foliot.scheduler.shard import SchedulerOptions, ShardScheduler
from foliot.scheduler.watchdog import Watchdog
from foliot.service import Service
from foliot.timing.clock import ClusterClock
from foliot.transport.monitored_transport import MonitoredTransport, open_transports
from foliot.worker.attempt import Prepare
from foliot.worker.claim_scope import PollScope
from foliot.worker.isolation.processes import Processes
from foliot.worker.journal import Journal
from foliot.worker.limits import Limits
from foliot.worker.poll_intervals import PollIntervals
from foliot.worker.receiver import Receiver
from foliot.worker.renewer import Renewer
from foliot.worker.worker import Worker

if TYPE_CHECKING:
    from foliot.api.access.response_cache import ResponseCache
    from foliot.api.build import ApiOptions, RestApi
    from foliot.api.services import Services
    from foliot.telemetry.traces import TraceObserver


@dataclass(frozen=True, slots=True)
class InstanceContext:
    """The objects that all parts of an instance share."""

    instance_id: str
    plan: InstanceSpec
    store: SqlStore
    clock: ClusterClock
    hints: Hints
    observer: Observer

    @property
    def settings(self) -> Settings:
        return self.plan.settings


# --- scheduling ------------------------------------------------------------------------------------


def make_scheduler(
    context: InstanceContext,
    outgoing: Mapping[Priority, Outgoing],
    on_led: Callable[[], None],
    *,
    names_all: bool,
) -> tuple[Scheduler, Witness | None]:
    """Make the scheduler, and the witness of its leases if one is configured.

    `on_led` is called when this instance becomes leader of the first shard.
    """
    settings = context.settings
    leases = LeaseOptions(
        context.instance_id,
        settings.lease_ttl_seconds,
        settings.heartbeat_seconds,
        settings.lease_provider,
        settings.lease_address,
    )
    provider, witness = open_leases(leases, context.store.leases, context.clock, context.observer)
    options = SchedulerOptions(
        ttl_s=settings.lease_ttl_seconds,
        heartbeat_s=settings.heartbeat_seconds,
        horizon_s=settings.horizon_seconds,
        poll_s=settings.poll_seconds,
        retention_days=settings.retention_days,
        worker_lease_s=settings.worker_lease_seconds,
        names_all=names_all,
    )

    def make(shard: Shard) -> ShardScheduler:
        made = ShardScheduler(
            shard,
            provider,
            context.store.database,
            context.clock,
            context.hints,
            context.observer,
            options,
            outgoing,
        )
        if shard.number == 0:
            made.leadership.on_elected(lambda _lease: on_led())
        return made

    pace = SharingIntervals(
        min(settings.poll_seconds, settings.heartbeat_seconds), settings.lease_ttl_seconds
    )
    scheduler = Scheduler(
        context.instance_id, context.store.surveys, context.clock, context.hints, make, pace
    )
    return scheduler, witness


def make_watchdog(context: InstanceContext) -> Watchdog:
    settings = context.settings
    return Watchdog(
        context.store.overviews,
        context.clock,
        context.observer,
        ttl_s=settings.lease_ttl_seconds,
        every_s=settings.poll_seconds,
    )


def make_measuring(context: InstanceContext) -> MeasureService:
    measures, every_s = Measures(context.store.database), context.settings.poll_seconds
    return MeasureService(measures, context.store.leases, context.clock, context.observer, every_s=every_s)


def make_notifier(context: InstanceContext, leadership: Callable[[], Leadership | None]) -> Notifier:
    settings, store = context.settings, context.store
    return Notifier(
        leadership,
        store.notification_rules,
        store.sightings,
        store.incidents,
        store.notifications,
        context.clock,
        context.hints,
        context.observer,
        NotifierOptions(settings.poll_seconds, settings.retention_days, settings.public_url),
    )


# --- workers ---------------------------------------------------------------------------------------


def make_worker(
    context: InstanceContext,
    runners: Mapping[str, TargetRunner],
    transports: Mapping[Priority, MonitoredTransport],
    pace: PollIntervals,
    prepare: Prepare,
    sampling: Sampling,
) -> Worker:
    settings, plan = context.settings, context.plan
    return Worker(
        context.instance_id,
        context.store.work,
        runners,
        context.clock,
        context.hints,
        context.observer,
        Journal(context.instance_id, context.store.notes),
        queues=plan.queues,
        concurrency=settings.worker_concurrency,
        lease_s=settings.worker_lease_seconds,
        poll_s=pace.poll_s,
        prepare=prepare,
        reach=PollScope(transports, context.clock, plan.transport_pace) if transports else None,
        sampling=sampling,
    )


def worker_services(context: InstanceContext, worker: Worker, pace: PollIntervals) -> tuple[Service, ...]:
    """The services that a worker needs until its last execution has ended."""
    lease_s = context.settings.worker_lease_seconds
    renewer = Renewer(worker, context.store.work, context.clock, context.hints, lease_s, pace.renew_s)
    return renewer, worker.journal, worker.settler


def choose_pace(settings: Settings, *, hears_others: bool) -> PollIntervals:
    lease_s = settings.worker_lease_seconds
    if settings.worker_poll_seconds is not None:
        return PollIntervals.at(settings.worker_poll_seconds, lease_s=lease_s, hears_others=hears_others)
    return PollIntervals.of(
        poll_s=settings.poll_seconds,
        lease_s=lease_s,
        uses_hints=settings.hints != "off",
        hears_others=hears_others,
    )


def make_receivers(worker: Worker, transports: Mapping[Priority, MonitoredTransport]) -> tuple[Receiver, ...]:
    return tuple(
        Receiver(worker, transport, [each for each in Priority if transports.get(each) is transport])
        for transport in dict.fromkeys(transports.values())
        # Celery's own workers receive the messages that Celery transports.
        if transport.kind is not BrokerKind.CELERY
    )


def open_plan_transports(
    plan: InstanceSpec, clock: ClusterClock, observer: Observer, celery: CeleryApp | None
) -> Mapping[Priority, MonitoredTransport]:
    """Open the brokers that carry messages; empty for instances that neither publish nor receive them."""
    if not plan.roles & ENGINE:
        return {}
    return open_transports(plan.settings.transport, clock, observer, plan.transport_pace, celery)


def open_celery(plan: InstanceSpec) -> CeleryApp | None:
    """Load the Celery application for `celery` targets and the transport; None: there is none."""
    if plan.settings.celery_app is not None:
        return load_celery(plan.settings.celery_app)
    return None if plan.celery is None else CeleryApp(plan.celery)


def make_processes(plan: InstanceSpec, limits: Limits) -> Processes | None:
    if InstanceRole.WORKER not in plan.roles or not plan.isolates:
        return None
    return Processes(plan.tasks, limits=limits)


def make_message_sender(context: InstanceContext, sender: Sender) -> MessageSender:
    every_s = context.settings.poll_seconds
    return MessageSender(
        context.store.notifications, sender, context.clock, context.hints, context.observer, every_s=every_s
    )


def make_consumers(context: InstanceContext) -> tuple[EventConsumer, ...]:
    return tuple(
        open_consumer(
            spec,
            context.store.consumers,
            context.clock,
            context.hints,
            context.observer,
            poll_s=context.settings.poll_seconds,
        )
        for spec in context.plan.consumers
    )


# --- events ----------------------------------------------------------------------------------------


def make_relay(context: InstanceContext) -> Relay:
    settings = context.settings
    assert settings.relay is not None
    return Relay(
        context.instance_id,
        context.store.relays,
        open_publisher(settings.relay.get_secret_value()),
        context.clock,
        context.hints,
        context.observer,
        RelayOptions(settings.lease_ttl_seconds, settings.heartbeat_seconds, settings.poll_seconds),
    )


# --- API -------------------------------------------------------------------------------------------


def make_api(
    context: InstanceContext,
    services: "Services",
    runners: Mapping[str, TargetRunner],
    is_running: Callable[[], bool],
) -> "RestApi":
    # Imported here: a process that serves no HTTP then starts in half the time.
    from foliot.api.build import RestApi

    return RestApi(
        services,
        context.hints,
        context.observer,
        context.plan.clock,
        _api_options(context.settings),
        available_targets=available_targets(runners),
        is_running=is_running,
    )


def _api_options(settings: Settings) -> "ApiOptions":
    from foliot.api.build import ApiOptions

    return ApiOptions(
        operator_key=_revealed(settings.admin_key),
        jwt_secret=_revealed(settings.jwt_secret),
        jwt_jwks_url=settings.jwt_jwks_url,
        jwt_issuer=settings.jwt_issuer,
        jwt_audience=settings.jwt_audience,
        rate_limit=settings.rate_limit,
        rate_limit_anonymous=settings.rate_limit_anonymous,
        redis_url=settings.redis_url,
        public_url=settings.public_url,
        retention_s=settings.retention_days * 86400,
    )


def _revealed(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def watch_replica(context: InstanceContext) -> ReplicaWatch | None:
    database = context.store.database
    if database.replica is None or InstanceRole.API not in context.plan.roles:
        return None
    max_lag_s = context.settings.database_read_lag_seconds
    return ReplicaWatch(database, database.replica, context.observer, max_lag_s=max_lag_s)


# --- telemetry -------------------------------------------------------------------------------------


def open_span_observer(
    plan: InstanceSpec, instance_id: str, roles: Sequence[str], clock: ClusterClock
) -> "TraceObserver | None":
    """Open the observer that makes spans. None: tracing is off, and its libraries are not imported."""
    url = plan.settings.traces_url
    if url is None:
        return None
    from foliot.telemetry.traces import open_traces

    return open_traces(url, instance_id, roles, clock.now)


# --- hints and cached answers ----------------------------------------------------------------------


def open_shared_hints(settings: Settings, observer: Observer) -> SharedHints | None:
    """Open what carries hints to other processes; None: nothing does."""
    if settings.hints_redis_url is not None:
        with _redis_there():
            from foliot.db.redis_hints import RedisHints

            return RedisHints(settings.hints_redis_url, observer)
    return open_hints(settings.database_url) if settings.uses_hints else None


def keep_answers(context: InstanceContext) -> "ResponseCache | None":
    url = context.settings.redis_url
    if url is None:
        return None
    cluster = hashlib.sha256(context.store.database.url.encode()).hexdigest()[:12]
    with _redis_there():
        from foliot.api.access.response_cache import ResponseCache

        return ResponseCache(url, context.plan.clock, context.observer, cluster)


@contextlib.contextmanager
def _redis_there() -> Iterator[None]:
    """Turn errors about FOLIOT_REDIS_URL into a SettingError."""
    try:
        yield
    except ImportError:
        raise SettingError("FOLIOT_REDIS_URL needs a package: pip install 'foliot[redis]'") from None
    except ValueError:
        raise SettingError(
            "FOLIOT_REDIS_URL is not a URL of Redis; right would be redis://host:6379/0"
        ) from None
