"""Builds a running instance from its settings. This is the only module that connects all parts."""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import httpx2

from foliot.access.address_guard import AddressGuard
from foliot.access.callback_tokens import CallbackTokens
from foliot.access.secrets import Redactor, SecretError, SecretResolver, references
from foliot.access.secrets_sql import Secrets, callback_key
from foliot.access.stored_text import NOTHING_HIDDEN
from foliot.commands import Commands
from foliot.commands.admission import DefinitionChecker
from foliot.db.dialect import Pool
from foliot.db.hints import Hint, Hints, LocalHints
from foliot.db.migrate import require_schema
from foliot.db.primary import require_primary
from foliot.db.rows.registry_rows import InstanceRecord
from foliot.instance.declarations import Declarer
from foliot.instance.factories import (
    InstanceContext,
    choose_pace,
    keep_answers,
    make_api,
    make_consumers,
    make_measuring,
    make_message_sender,
    make_notifier,
    make_processes,
    make_receivers,
    make_relay,
    make_scheduler,
    make_watchdog,
    make_worker,
    open_celery,
    open_plan_transports,
    open_shared_hints,
    open_span_observer,
    watch_replica,
    worker_services,
)
from foliot.instance.preparation import OutgrownError, prepare_schema, require_key
from foliot.instance.registration import InstanceRegistration, task_record
from foliot.instance.spec import InstanceRole, InstanceSpec, possible_roles
from foliot.instance.store import SqlStore, open_store
from foliot.kinds.function_target import FunctionRunner
from foliot.kinds.http_connections import guarded_pool
from foliot.kinds.http_request import Callback
from foliot.kinds.http_runner import HttpRunner
from foliot.kinds.target_protocol import AttemptFailedError, RunnerContext, open_runners
from foliot.model.event import Observers
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.instance_events import ClockObserved, InstanceStarted, InstanceStopped, MemoryLimitPassed
from foliot.model.schedule import ManagedBy
from foliot.model.trace import sampled_by_caller
from foliot.notifications.delivery import Sender
from foliot.notifications.sender import AT_ONCE
from foliot.outbox.consumers import EventConsumer
from foliot.planning.change import Author
from foliot.scheduler.dispatch.outgoing import Outgoing
from foliot.scheduler.leases.leadership import Leadership
from foliot.scheduler.leases.second_witness import Witness, cluster_name
from foliot.scheduler.scheduler import Scheduler
from foliot.scheduler.system_tasks import SYSTEM_TASKS
from foliot.service import Service, ServiceRunner
from foliot.telemetry.health.readiness import silence_limit_s
from foliot.timing.clock import ClusterClock
from foliot.transport.monitored_transport import describe_transports
from foliot.version import __version__
from foliot.worker.limits import MemoryWatch, keep_to_cores
from foliot.worker.receiver import Receiver
from foliot.worker.worker import Worker

if TYPE_CHECKING:
    from foliot.api.build import RestApi
    from foliot.telemetry.health.probes import Probes

REGISTRY_EVERY_S = 5.0
WARMING_S = 30.0
"""Timeout for importing the task functions at the start."""
OUTGROWN_GRACE_S = 7 * 86400.0
"""How long a worker that passed its memory limit may go on to finish its running executions."""


class Instance:
    """A running Foliot process, or the part of Foliot that runs inside an application."""

    def __init__(self, plan: InstanceSpec) -> None:
        self.plan = plan
        self.instance_id = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        settings = plan.settings
        self.roles = possible_roles(plan)
        self.observer = Observers(plan.observers)
        self.clock = ClusterClock(plan.clock)
        self._traces = open_span_observer(plan, self.instance_id, self._roles(), self.clock)
        if self._traces is not None:
            self.observer.add(self._traces)
        self.store: SqlStore = open_store(
            settings.database_url,
            clock=plan.clock,
            # One connection per consumer: each holds its connection while its handler runs.
            pools=settings.pools | {Pool.CONSUMER: max(1, len(plan.consumers))},
            ttl_s=settings.lease_ttl_seconds,
            uses_hints=settings.uses_hints,
            read_url=settings.database_read_url,
        )
        self._limits = settings.worker_limits
        is_only_worker = plan.is_own_process and plan.roles == {InstanceRole.WORKER}
        if is_only_worker and self._limits.cpu_count is not None:
            keep_to_cores(self._limits.cpu_count)
        self._notify = open_shared_hints(settings, self.observer)
        self.hints: Hints = self._notify or LocalHints()
        context = InstanceContext(self.instance_id, plan, self.store, self.clock, self.hints, self.observer)
        self.processes = make_processes(plan, self._limits)
        self.secrets = Secrets(self.store.database, settings.cipher)
        self._resolver = SecretResolver(self.secrets, os.environ, settings.secrets_dir)
        guard = AddressGuard(settings.http_allowed)
        certificates = httpx2.create_ssl_context(trust_env=False)
        pool = guarded_pool(guard, connections=settings.worker_concurrency, ssl_context=certificates)
        # A separate pool: notifications must go out even when hanging agents use all other connections.
        letters = guarded_pool(guard, connections=AT_ONCE, ssl_context=certificates)
        self._sender = Sender(guard, letters, self._resolver)
        self.celery = open_celery(plan)
        self.runners = open_runners(
            RunnerContext(
                clock=plan.clock,
                secrets=self._resolver,
                guard=guard,
                tasks=plan.tasks,
                isolation=self.processes,
                http_pool=pool,
                celery=self.celery,
                observer=self.observer,
            )
        )
        self.functions = cast("FunctionRunner", self.runners["function"])
        self._http = cast("HttpRunner", self.runners["http"])
        self.transports = open_plan_transports(plan, self.clock, self.observer, self.celery)
        self._outgoing = {each: Outgoing(each) for each in self.transports.values()}
        self.scheduler: Scheduler | None = None
        self.witness: Witness | None = None
        """The second witness of leadership beside the database (etcd or Redis); None: not configured."""
        self._notifier = make_notifier(context, self._first_leadership)
        if InstanceRole.SCHEDULER in plan.roles:
            outgoing = {priority: self._outgoing[each] for priority, each in self.transports.items()}
            self.scheduler, self.witness = make_scheduler(
                context, outgoing, self._notifier.wake.set, names_all=self._traces is not None
            )
        self._watchdog = make_watchdog(context)
        self._measuring = make_measuring(context)
        self.relay = make_relay(context) if InstanceRole.RELAY in self.roles else None
        self.worker: Worker | None = None
        self._receivers: tuple[Receiver, ...] = ()
        self._worker_services: tuple[Service, ...] = ()
        self.consumers: tuple[EventConsumer, ...] = ()
        if InstanceRole.WORKER in plan.roles:
            self._join_worker(context)
        self._message_sender = make_message_sender(context, self._sender)
        self._presence = InstanceRegistration(
            self.store.registry,
            self.record,
            self.refresh,
            max(REGISTRY_EVERY_S, settings.heartbeat_seconds),
            self._set_draining,
        )
        self.hints.listen(Hint.INSTANCE, lambda _ids: self._presence.wake.set())
        self.observer.add(self._presence)
        self.commands = Commands(
            self.store.database,
            self.hints,
            self.observer,
            self.clock,
            admission=DefinitionChecker(self.store.database, plan.tasks, self.runners),
        )
        self.declarer = Declarer(self.store.schedules, self.commands.schedules)
        self.replica_watch = watch_replica(context)
        self.api = self._make_api(context) if InstanceRole.API in plan.roles else None
        self._tokens: CallbackTokens | None = None
        self._running = ServiceRunner(self.observer, plan.clock, settings.lease_ttl_seconds + 1)
        self._is_shown = False
        self.is_running = False
        """True from the start until a stop is requested."""
        self._hurry = asyncio.Event()
        self._stopping = asyncio.Event()
        self.has_outgrown = False
        """Whether it stops because the process passed its memory limit."""

    def _join_worker(self, context: InstanceContext) -> None:
        pace = choose_pace(context.settings, hears_others=self._notify is not None)
        sampling = sampled_by_caller if self._traces is None else self._traces.is_kept
        worker = make_worker(context, self.runners, self.transports, pace, self._with_secrets, sampling)
        self.worker = worker
        self._receivers = make_receivers(worker, self.transports)
        self._worker_services = worker_services(context, worker, pace)
        if self.plan.is_own_process and self._limits.memory_bytes is not None:
            self._worker_services += (MemoryWatch(self._limits.memory_bytes, self._outgrow),)
        self.consumers = make_consumers(context)

    def _make_api(self, context: InstanceContext) -> "RestApi":
        from foliot.api.services import Services

        services = Services(
            self.store.database,
            self.commands,
            self.secrets,
            self.clock,
            self.tokens,
            context.settings.lease_ttl_seconds,
            self.replica_watch,
            keep_answers(context),
        )
        return make_api(context, services, self.runners, lambda: self.is_running)

    def _first_leadership(self) -> Leadership | None:
        """Return the leadership of the first shard, whose leader also evaluates rules. None: no shards."""
        shards = [] if self.scheduler is None else self.scheduler.shards
        return shards[0].leadership if shards else None

    # --- start and stop ---------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Check the database, read its clock, and declare the schedules of the code.

        Raises if anything is wrong, so that an instance never runs half started.
        """
        database = self.store.database
        await self._read_clock()
        await require_primary(database)
        await prepare_schema(database, self.plan)
        if self.api is not None and self.plan.settings.admin_key is None:
            await require_key(self.store.keys)
        if self.plan.tasks:
            await self.store.registry.register_tasks([task_record(task) for task in self.plan.tasks])
        if self.scheduler is not None:
            await self.store.registry.register_tasks(SYSTEM_TASKS)
        if self.witness is not None:
            self.witness.cluster = cluster_name(await callback_key(database))
        await self.refresh()
        if self.plan.settings.public_url is not None:
            self._http.callback = Callback(
                self.plan.settings.public_url, await self.tokens(), self.store.agents.keep_sent
            )
        for spec in self.plan.schedules:
            await self.declarer.declare(DEFAULT_HOST_ID, spec, Author("code"), ManagedBy.CODE)
        self.observer.notify(InstanceStarted(self.instance_id, self._roles(), __version__, database.url))

    async def refresh(self) -> None:
        """Read again which tasks are inactive, and the offset of this machine's clock."""
        self.functions.inactive = await self.store.work.inactive_tasks()
        await self._read_clock()
        self.observer.notify(ClockObserved(self.clock.offset_s))

    async def _read_clock(self) -> None:
        sent_at = self.clock.monotonic()
        self.clock.observe(await self.store.now(), sent_at)

    async def tokens(self) -> CallbackTokens:
        """Return the tokens with which agents prove that they were given an attempt."""
        if self._tokens is None:
            self._tokens = CallbackTokens(await callback_key(self.store.database))
        return self._tokens

    async def _with_secrets(self, host_id: UUID, args: dict[str, Any]) -> tuple[dict[str, Any], Redactor]:
        if not references(args):
            return args, NOTHING_HIDDEN
        try:
            return await self._resolver.fill(host_id, args)
        except SecretError as error:
            raise AttemptFailedError(str(error), is_permanent=True) from None

    @property
    def services(self) -> tuple[Service, ...]:
        """All services that this instance runs."""
        found: list[Service] = []
        if self._notify is not None:
            found.append(self._notify)
        if self.scheduler is not None:
            found += [self.scheduler, self._watchdog, *self._outgoing.values(), *self.scheduler.services]
            found.append(self._notifier)
            if self._is_shown:
                found.append(self._measuring)
        if self.witness is not None:
            found.append(self.witness)
        if self.worker is not None:
            found += [self.worker, *self._receivers, *self._worker_services, self._message_sender]
        found += self.consumers
        if self.relay is not None:
            found += self.relay.services
        if self.replica_watch is not None:
            found.append(self.replica_watch)
        if self.api is not None:
            found += self.api.services
        return (*found, self._presence)

    async def start(self) -> None:
        try:
            await self.prepare()
        except BaseException:
            await self.store.close()
            raise
        if self.processes is not None:
            # Otherwise these imports would count against the timeout of the first attempt.
            with contextlib.suppress(Exception):  # the first attempt fails the same way and reports it
                async with asyncio.timeout(WARMING_S):
                    await self.processes.start()
        self.begin()

    async def connect(self) -> None:
        """Connect as a client: check the database and start sending hints. Runs no other service."""
        try:
            await self._read_clock()
            await require_schema(self.store.database)
            await self.refresh()
        except BaseException:
            await self.close()
            raise
        if self._notify is not None:
            self._running.exchange((), (self._notify,))

    async def disconnect(self) -> None:
        if self._notify is not None:
            self._running.stop()
            await self._running.finish()
            with contextlib.suppress(Exception):
                await self._notify.step()  # the last hints
        await self.close()

    def begin(self) -> None:
        """Run every service from now on. Call `prepare` first."""
        if self.scheduler is not None:
            self.scheduler.on_changed = self._running.exchange
        self._running.exchange((), self.services)
        self.is_running = True

    async def stop(self) -> None:
        """Stop cleanly: finish the current steps, hand back unfinished executions, release the lease."""
        self.is_running = False
        if self.api is not None:
            self.api.end_streams()
        # Running executions still need lease renewals and the journal; the last hints must go out.
        self._running.stop(but=(*self._worker_services, self._notify))
        if self.scheduler is not None:
            # Stop firing first, so that no transaction is in flight when the lease is released.
            await self._running.finish(self.scheduler.services)
            with contextlib.suppress(Exception):
                await self.scheduler.release()
        if self.relay is not None:
            # Stop publishing first, so that nothing is in flight when another relay takes over.
            self.relay.wind_up()
            await self._running.finish(self.relay.services)
            with contextlib.suppress(Exception):
                await self.relay.release()
        if self.worker is not None:
            # A claim in flight brings more work, so wait for its step first.
            await self._running.finish((self.worker, *self._receivers))
            with contextlib.suppress(Exception):
                # Running executions may take minutes; other instances must not plan with this one.
                await self.store.surveys.withdraw(self.instance_id)
            with contextlib.suppress(Exception):
                await self._drain(self.worker)
        self._running.stop()
        await self._running.finish()
        if self._notify is not None:
            with contextlib.suppress(Exception):
                await self._notify.step()  # the last hints: the lease is free, work was handed back
        with contextlib.suppress(Exception):
            await self.store.registry.leave(self.instance_id)
        await self.close()
        self.observer.notify(InstanceStopped(self.instance_id))

    async def close(self) -> None:
        if self.processes is not None:
            await self.processes.close()
        for consumer in self.consumers:
            await consumer.close()
        for transport in self._outgoing:
            await transport.close()
        if self.witness is not None:
            await self.witness.close()
        for runner in self.runners.values():
            await runner.close()
        await self._sender.close()
        if self.celery is not None:
            self.celery.close()
        if self.relay is not None:
            with contextlib.suppress(Exception):
                await self.relay.close()
        if self.api is not None:
            await self.api.close()
        if self._notify is not None:
            await self._notify.close()
        await self.store.close()
        if self._traces is not None:
            await asyncio.to_thread(self._traces.close)

    async def run(
        self,
        *,
        on_started: Callable[[], Awaitable[None]] | None = None,
        on_stopping: Callable[[], None] = lambda: None,
    ) -> None:
        """Start, and stop cleanly on SIGTERM or SIGINT. A second signal hands back running executions."""
        stopping = self._stopping
        loop = asyncio.get_running_loop()

        def ask() -> None:
            (self._hurry if stopping.is_set() else stopping).set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ask)
        try:
            await self.start()
            if on_started is not None:
                await on_started()
            await stopping.wait()
            on_stopping()
            await self.stop()
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
        if self.has_outgrown:
            raise OutgrownError(str(self.plan.settings.worker_memory_limit))

    def _outgrow(self, resident: int) -> None:
        self.has_outgrown = True
        self.observer.notify(MemoryLimitPassed(self.instance_id, resident, self._limits.memory_bytes or 0))
        self._stopping.set()

    async def _drain(self, worker: Worker) -> None:
        # After the memory limit, finishing harms nobody. A supervisor may still end the process earlier.
        grace_s = OUTGROWN_GRACE_S if self.has_outgrown else self.plan.settings.stop_grace_seconds
        draining = asyncio.create_task(worker.drain(grace_s))
        hurried = asyncio.create_task(self._hurry.wait())
        await asyncio.wait({draining, hurried}, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if not draining.done():
            draining.cancel()
            await worker.drain(0)
        else:
            draining.result()

    def _set_draining(self, is_draining: bool) -> None:
        """Stop or resume claiming. The scheduler finds out by itself to whom it hands its shards."""
        if self.worker is not None:
            self.worker.rest(is_draining)

    def stuck(self, limit_s: float) -> Mapping[str, float]:
        """Return the required services that are stuck longer than the limit, with their seconds."""
        needed: list[Service] = []
        if self.scheduler is not None:
            needed += [self.scheduler, *(each for shard in self.scheduler.shards for each in shard.services)]
        if self.worker is not None:
            needed += [self.worker, *self._worker_services]
        if self.relay is not None and self.api is None:
            # A broker that is away is no reason to take the API out of a load balancer.
            needed += self.relay.services
        return self._running.stuck(needed, limit_s)

    def show(self, probes: "Probes") -> None:
        """Tell the probes what to watch, and start measuring the figures that only they need."""
        self._is_shown = True
        settings = self.plan.settings
        probes.watch(
            self.store.database,
            is_running=lambda: self.is_running,
            limit_s=silence_limit_s(settings.poll_seconds, settings.lease_ttl_seconds),
            stuck=self.stuck,
            replica=self.replica_watch,
        )

    # --- registry ---------------------------------------------------------------------------------

    def _roles(self) -> tuple[str, ...]:
        return tuple(sorted(role.value for role in self.roles))

    def record(self) -> InstanceRecord:
        """Return this instance's row for the registry."""
        return InstanceRecord(
            instance_id=self.instance_id,
            hostname=socket.gethostname(),
            pid=os.getpid(),
            roles=self._roles(),
            version=__version__,
            capacity=self.worker.concurrency if self.worker else 0,
            load=len(self.worker.running) if self.worker else 0,
            queues=None if self.plan.queues is None else tuple(self.plan.queues),
            known_tasks=tuple(task.name for task in self.plan.tasks) if self.worker else None,
            is_leader=self.scheduler is not None and bool(self.scheduler.leases),
            clock_offset_s=self.clock.offset_s,
            transports=describe_transports(self.transports),
            lease_provider=None if self.witness is None else self.witness.describe(),
        )
