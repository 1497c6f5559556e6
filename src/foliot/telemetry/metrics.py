"""Prometheus metrics, counted from events.

Labels are bounded. Their values are exported from the start, so that a rate is correct when the first failure
occurs. A process may lead several shards: wheel sizes are summed, and the lag is that of the worst shard.

Measured on 2 cores, per batch of 1,000: 60 µs fired, 120 µs claimed, 180 µs settled. A tick costs 4 µs.
"""

from bisect import bisect_right
from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from foliot.model.event import (
    AgentFailed,
    BackfillAdvanced,
    BatchFired,
    ExecutionRetried,
    ExecutionsCancelled,
    ExecutionsClaimed,
    ExecutionsRescued,
    ExecutionsSettled,
    ExecutionTriggered,
    OverdueCounted,
    QueuesMeasured,
    ScheduleChanged,
    SchedulesCounted,
    SkippedExecution,
    TickCompleted,
    WorkerLoadChanged,
)
from foliot.model.execution import TRANSITIONS, SkipReason, Status, TriggeredBy
from foliot.model.instance_events import (
    ClockObserved,
    LeaderElected,
    LeaseAttempted,
    LeaseLost,
    LeaseProviderLost,
    LeaseProviderReached,
    LeaseReleased,
    RedisFailed,
    ReplicaMeasured,
    ServiceFailed,
    WriteFenced,
)
from foliot.model.policy import Priority
from foliot.telemetry.api_metrics import ApiMetrics
from foliot.telemetry.delivery_metrics import DeliveryMetrics
from foliot.telemetry.dispatch import Dispatch
from foliot.telemetry.instruments import Instruments
from foliot.telemetry.queue_depths import QueueDepths

OUTCOMES = (*sorted(TRANSITIONS[Status.RUNNING]), Status.SKIPPED)
"""Statuses that events report: settled, handed back, rescued, cancelled or skipped."""

LEASE_RESULTS = ("acquired", "held", "contended")
REDIS_USES = ("hints", "rates", "cache", "lease", "transport", "relay")
OTHER = "other"
USUAL_ERRORS = ("none", "timeout", *map(str, (400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 503, 504)))
KNOWN_ERRORS = frozenset({*USUAL_ERRORS, *(str(status.value) for status in HTTPStatus)})
"""Label values for agents' errors. A status code unknown to HTTP is counted as `other`."""

LATENESS_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
START_DELAY_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 300)
"""Includes the SLAs of the three priorities as bounds: 1, 5 and 30 s."""
DURATION_BUCKETS_S = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400)
TICK_BUCKETS_S = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)


class MetricsObserver(Dispatch):
    """Counts events in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._registry = registry
        self._make = Instruments(registry)
        self._add_leading()
        self._add_firing()
        self._add_executing()
        self._add_agents()
        self._add_database()
        self._delivery = DeliveryMetrics(self, registry)
        self._api = ApiMetrics(self, registry)
        self._add_servers()

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    # --- leading ----------------------------------------------------------------------------------

    def _add_leading(self) -> None:
        self._elections = self._make.counter("scheduler_elections", "Times this instance became a leader")
        self._fenced = self._make.counter(
            "scheduler_fenced_writes", "Writes under a lost lease that the database refused"
        )
        self._contentions = self._make.counter("lock_contention", "Races for a lease that this instance lost")
        self._lease_results = self._make.counters(
            "lease_acquisition", "Attempts to take a lease", "result", LEASE_RESULTS
        )
        self._is_leader = self._make.by(
            "shard", Gauge, "scheduler_is_leader", "1 while this instance leads the shard"
        )
        self._is_leader.labels("0")
        self._seen_shards = {0}
        # One series, for the configured lease provider. None if only the database is used.
        self._is_provider_up = self._make.by(
            "provider",
            Gauge,
            "lease_provider_up",
            "1 while etcd or Redis answers; 0 while the database alone decides who leads",
        )
        self._ended: set[int] = set()
        self.on(LeaseAttempted, self._lease_attempted)
        self.on(LeaderElected, self._leader_elected)
        self.on(LeaseLost, self._leading_ended)
        self.on(LeaseReleased, self._leading_ended)
        self.on(LeaseProviderLost, lambda lost: self._is_provider_up.labels(lost.provider).set(0))
        self.on(LeaseProviderReached, lambda reached: self._is_provider_up.labels(reached.provider).set(1))
        self.on(WriteFenced, lambda _: self._fenced.inc())

    def _lease_attempted(self, attempted: LeaseAttempted) -> None:
        self._is_leader.labels(str(attempted.shard))
        self._seen_shards.add(attempted.shard)
        self._lease_results[attempted.result].inc()
        if attempted.result == "contended":
            self._contentions.inc()

    def _leader_elected(self, elected: LeaderElected) -> None:
        self._elections.inc()
        self._ended.discard(elected.shard)
        self._is_leader.labels(str(elected.shard)).set(1)
        self._seen_shards.add(elected.shard)

    def _leading_ended(self, ended: LeaseLost | LeaseReleased) -> None:
        # After resharding, a removed shard ends here too. Its series must not be created again.
        if ended.shard in self._seen_shards:
            self._is_leader.labels(str(ended.shard)).set(0)
        self._ended.add(ended.shard)
        self._wheel_sizes.pop(ended.shard, None)
        self._lags_s.pop(ended.shard, None)
        self._show_shards()
        self._show_lag()

    # --- firing -----------------------------------------------------------------------------------

    def _add_firing(self) -> None:
        self._fires = self._make.counter(
            "scheduler_fires", "Executions made by schedulers: of due times and of backfills"
        )
        self._triggered = self._make.counters(
            "executions_triggered", "Executions made, by what asked for them", "triggered_by", TriggeredBy
        )
        self._skips = self._make.counters("scheduler_skips", "Due times skipped", "reason", SkipReason)
        self._checked = self._make.counter(
            "scheduler_schedules_checked", "Due schedules taken from the wheel"
        )
        self._lateness = self._make.batches(
            "scheduler_lateness_seconds", "From due time to firing", LATENESS_BUCKETS_S
        )
        self._tick = Histogram(
            "foliot_scheduler_tick_duration_seconds",
            "How long the leader took to look at its wheel and fire what was due",
            buckets=TICK_BUCKETS_S,
            registry=self._registry,
        )
        self._wheel_size = self._make.gauge(
            "scheduler_wheel_size", "Due times in memory, over all shards led"
        )
        self._lag = self._make.gauge(
            "scheduler_lag_seconds",
            "How long the oldest undecided due time has been waiting: of the shards led here, or of any",
        )
        self._wheel_sizes: dict[int, int] = {}
        self._lags_s: dict[int, float] = {}
        self._overdue_s = 0.0
        self.on(BatchFired, self._batch_fired)
        self.on(BackfillAdvanced, self._backfill_advanced)
        self.on(ExecutionTriggered, lambda event: self._triggered[event.triggered_by].inc())
        self.on(ScheduleChanged, lambda changed: self._skip_one(changed.skipped))
        self.on(TickCompleted, self._tick_completed)

    def _batch_fired(self, batch: BatchFired) -> None:
        self._fires.inc(len(batch.fired))
        self._triggered[TriggeredBy.SCHEDULER].inc(len(batch.fired))
        self._lateness.observe([fired.lateness_s for fired in batch.fired])
        self._skip(batch.skipped)

    def _backfill_advanced(self, advanced: BackfillAdvanced) -> None:
        self._fires.inc(len(advanced.fired))
        self._triggered[TriggeredBy.BACKFILL].inc(len(advanced.fired))

    def _skip_one(self, skipped: SkippedExecution | None) -> None:
        if skipped is not None:
            self._skip([skipped])

    def _skip(self, skipped: Sequence[SkippedExecution]) -> None:
        """Count skips: by reason per due time (a row may decide several), by status per row."""
        times: Tally[SkipReason] = Tally()
        for each in skipped:
            times[each.reason] += 1 + each.missed_count
        for reason, count in times.items():
            self._skips[reason].inc(count)
        self._outcomes[Status.SKIPPED].inc(len(skipped))

    def _tick_completed(self, tick: TickCompleted) -> None:
        self._tick.observe(tick.duration_s)
        self._checked.inc(tick.checked)
        # A tick that was running when the lease was lost still publishes its event.
        if tick.shard not in self._ended:
            self._wheel_sizes[tick.shard] = tick.wheel_size
            self._lags_s[tick.shard] = tick.lag_s
            self._show_shards()
            self._show_lag()

    def _show_shards(self) -> None:
        self._wheel_size.set(sum(self._wheel_sizes.values()))

    def _show_lag(self) -> None:
        # Ticks give the current lag. But a hanging leader has no ticks, and a follower has none either.
        self._lag.set(max(self._overdue_s, *self._lags_s.values(), 0.0))

    # --- executing --------------------------------------------------------------------------------

    def _add_executing(self) -> None:
        self._outcomes = self._make.counters(
            "execution_status", "Executions by the status they got", "status", OUTCOMES
        )
        self._retries = self._make.counter(
            "execution_retries", "Attempts that will be followed by another, by policy or by hand"
        )
        self._duration = self._make.batches(
            "execution_duration_seconds", "How long attempts ran", DURATION_BUCKETS_S
        )
        self._start_delays = self._make.batches_by(
            "priority",
            Priority,
            "execution_start_delay_seconds",
            "From ready to claimed",
            START_DELAY_BUCKETS_S,
        )
        self._sla_missed = self._make.counters(
            "queue_sla_missed", "Executions claimed later than their priority promises", "priority", Priority
        )
        self._rescued = self._make.counter(
            "worker_rescued", "Executions taken back from workers that vanished"
        )
        self._utilization = self._make.gauge("worker_utilization", "Running executions per capacity, 0 to 1")
        self._running = self._make.gauge("worker_running", "Executions that run in this process")
        self._capacity = self._make.gauge(
            "worker_capacity", "Executions that may run in this process at once"
        )
        self._loads: dict[str, WorkerLoadChanged] = {}
        self.on(ExecutionsClaimed, self._executions_claimed)
        self.on(ExecutionsSettled, self._executions_settled)
        self.on(ExecutionsCancelled, self._executions_cancelled)
        self.on(ExecutionRetried, lambda _: self._retries.inc())
        self.on(ExecutionsRescued, self._executions_rescued)
        self.on(WorkerLoadChanged, self._worker_load_changed)

    def _executions_claimed(self, batch: ExecutionsClaimed) -> None:
        delays: dict[Priority, list[float]] = {}
        for claimed in batch.claimed:
            delays.setdefault(claimed.priority, []).append(claimed.start_delay_s)
        for priority, delays_s in delays.items():
            self._start_delays[priority].observe(delays_s)
            # `observe` has sorted the list.
            self._sla_missed[priority].inc(len(delays_s) - bisect_right(delays_s, priority.sla_s))

    def _executions_settled(self, batch: ExecutionsSettled) -> None:
        handed_back = Status.PENDING  # by a worker that stops: the attempt did not finish
        self._duration.observe([one.duration_s for one in batch.settled if one.status is not handed_back])
        self._count_outcomes(settled.status for settled in batch.settled)

    def _executions_cancelled(self, batch: ExecutionsCancelled) -> None:
        durations_s = [one.duration_s for one in batch.cancelled]
        self._duration.observe([duration_s for duration_s in durations_s if duration_s is not None])
        self._outcomes[Status.CANCELLED].inc(len(batch.cancelled))

    def _executions_rescued(self, batch: ExecutionsRescued) -> None:
        self._rescued.inc(len(batch.rescued))
        self._count_outcomes(batch.rescued.values())

    def _count_outcomes(self, statuses: Iterable[Status]) -> None:
        tally = Tally(statuses)
        for status, count in tally.items():
            self._outcomes[status].inc(count)
        self._retries.inc(tally[Status.RETRYING])

    def _worker_load_changed(self, load: WorkerLoadChanged) -> None:
        self._loads[load.worker_id] = load
        capacity = sum(one.capacity for one in self._loads.values())
        running = sum(one.running for one in self._loads.values())
        self._running.set(running)
        self._capacity.set(capacity)
        self._utilization.set(running / capacity if capacity else 0.0)

    # --- agents -----------------------------------------------------------------------------------

    def _add_agents(self) -> None:
        self._agent_errors = self._make.by(
            "status_code", Counter, "agent_http_errors_total", "Requests to agents that were no success"
        )
        for usual in USUAL_ERRORS:
            self._agent_errors.labels(usual)
        self.on(AgentFailed, self._agent_failed)

    def _agent_failed(self, failed: AgentFailed) -> None:
        code = failed.status_code
        self._agent_errors.labels(code if code in KNOWN_ERRORS else OTHER).inc()

    # --- the whole database -----------------------------------------------------------------------

    def _add_database(self) -> None:
        # Every scheduler measures the whole database: take the maximum over instances, not the sum.
        self._depths = QueueDepths(self._registry)
        self._active = self._make.gauge("schedules_active", "Active schedules, in the whole database")
        # Zero in instances that do not count.
        self._shards = self._make.gauge(
            "scheduler_shards", "Shards that are to be led, in the whole database"
        )
        self._overdue = self._make.gauge(
            "schedules_overdue", "Schedules due for too long and not decided, in the whole database"
        )
        self.on(QueuesMeasured, self._depths.measured)
        self.on(SchedulesCounted, self._schedules_counted)
        self.on(OverdueCounted, self._overdue_counted)

    def _overdue_counted(self, counted: OverdueCounted) -> None:
        self._overdue.set(counted.count)
        self._overdue_s = counted.late_s
        self._show_lag()

    def _schedules_counted(self, counted: SchedulesCounted) -> None:
        self._active.set(counted.active)
        self._shards.set(counted.shards)
        # Remove the series of shards that no longer exist after resharding, so that no alert fires for them.
        for shard in [each for each in self._seen_shards if each >= counted.shards]:
            self._seen_shards.discard(shard)
            self._is_leader.remove(str(shard))

    # --- the servers behind it --------------------------------------------------------------------

    def _add_servers(self) -> None:
        self._clock_offset = self._make.gauge(
            "clock_offset_seconds", "How far this machine's clock is ahead of the database's"
        )
        self._replica_lag = self._make.gauge(
            "replica_lag_seconds", "How far the replica is behind the primary; NaN: not known"
        )
        self._redis_errors = self._make.counters(
            "redis_errors", "Calls of Redis that failed, and were done without", "what", REDIS_USES
        )
        # Service names come from code, so there are few.
        self._service_failures = self._make.by(
            "service",
            Counter,
            "service_failures_total",
            "Steps of a service that failed, and were tried again",
        )
        self.on(ServiceFailed, lambda failed: self._service_failures.labels(failed.service).inc())
        self.on(ClockObserved, lambda observed: self._clock_offset.set(observed.offset_s))
        self.on(ReplicaMeasured, self._replica_measured)
        self.on(RedisFailed, lambda failed: self._redis_errors[failed.what].inc())

    def _replica_measured(self, measured: ReplicaMeasured) -> None:
        self._replica_lag.set(float("nan") if measured.lag_s is None else measured.lag_s)
