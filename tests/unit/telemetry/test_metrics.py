"""Events add up to the metrics that operators were promised by name."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry, Histogram

from foliot.model.delivery_events import ConsumerLagChanged, EventsConsumed
from foliot.model.event import (
    AgentFailed,
    BackfillAdvanced,
    BatchFired,
    CancelledExecution,
    ClaimedExecution,
    DomainEvent,
    ExecutionsCancelled,
    ExecutionsClaimed,
    ExecutionsRescued,
    ExecutionsSettled,
    ExecutionTriggered,
    FiredExecution,
    OverdueCounted,
    QueuesMeasured,
    SchedulesCounted,
    SettledExecution,
    SkippedExecution,
    TickCompleted,
    WorkerLoadChanged,
)
from foliot.model.execution import SkipReason, Status, TriggeredBy
from foliot.model.instance_events import (
    CredentialRefused,
    LeaderElected,
    LeaseAttempted,
    LeaseLost,
    LeaseReleased,
    RedisFailed,
    RequestAnswered,
    ServiceFailed,
    WriteFenced,
)
from foliot.model.policy import Priority
from foliot.telemetry.histogram import BatchHistogram
from foliot.telemetry.metrics import MetricsObserver
from foliot.telemetry.queue_depths import MAX_QUEUES

ID = UUID(int=1)
FIRE_TS = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.observer = MetricsObserver(self.registry)

    def tell(self, *told: DomainEvent) -> None:
        for event in told:
            self.observer.notify(event)

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"foliot_{name}", labels)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def fired(lateness_s: float) -> FiredExecution:
    return FiredExecution(ID, ID, FIRE_TS, lateness_s, 0)


def skipped(reason: SkipReason) -> SkippedExecution:
    return SkippedExecution(ID, ID, FIRE_TS, reason, 0)


def claimed(priority: Priority, start_delay_s: float) -> ClaimedExecution:
    return ClaimedExecution(ID, ID, 1, "default", priority, start_delay_s)


def settled(status: Status, duration_s: float = 1.0) -> SettledExecution:
    return SettledExecution(ID, ID, 1, status, duration_s, None)


REDIS_USES = ("hints", "rates", "cache", "lease", "transport", "relay")


@pytest.mark.parametrize(
    "sample",
    [
        "foliot_scheduler_tick_duration_seconds_count",
        "foliot_scheduler_fires_total",
        *[f'foliot_scheduler_skips_total{{reason="{reason}"}}' for reason in SkipReason],
        "foliot_scheduler_lateness_seconds_count",
        "foliot_scheduler_lag_seconds",
        "foliot_scheduler_wheel_size",
        "foliot_scheduler_elections_total",
        'foliot_scheduler_is_leader{shard="0"}',
        "foliot_scheduler_fenced_writes_total",
        *[
            f'foliot_lease_acquisition_total{{result="{result}"}}'
            for result in ("acquired", "held", "contended")
        ],
        *[f'foliot_queue_sla_missed_total{{priority="{priority}"}}' for priority in Priority],
        *[
            f'foliot_execution_status_total{{status="{status}"}}'
            for status in ("success", "failed", "timeout", "cancelled", "unknown", "retrying", "skipped")
        ],
        "foliot_execution_duration_seconds_count",
        "foliot_execution_retries_total",
        *[f'foliot_execution_start_delay_seconds_count{{priority="{priority}"}}' for priority in Priority],
        *[f'foliot_executions_triggered_total{{triggered_by="{each}"}}' for each in TriggeredBy],
        *[f'foliot_queue_depth{{priority="{priority}",queue="default"}}' for priority in Priority],
        "foliot_worker_utilization",
        "foliot_worker_rescued_total",
        "foliot_scheduler_schedules_checked_total",
        "foliot_lock_contention_total",
        *[f'foliot_agent_http_errors_total{{status_code="{code}"}}' for code in ("500", "none", "timeout")],
        *[f'foliot_redis_errors_total{{what="{what}"}}' for what in REDIS_USES],
        "foliot_outbox_lag",
        "foliot_schedules_active",
        "foliot_schedules_overdue",
    ],
)
def test_every_metric_is_shown_as_zero_before_anything_happened(metrics: Metrics, sample: str) -> None:
    assert f"{sample} 0.0" in metrics.observer.render().decode().splitlines()


def test_a_batch_counts_its_fires_and_its_skips_by_reason(metrics: Metrics) -> None:
    skips = [skipped(SkipReason.OVERLAP), skipped(SkipReason.OVERLAP), skipped(SkipReason.MISFIRE)]
    metrics.tell(BatchFired(0, 1, "node-1", [fired(0.0), fired(0.5)], skips, 0, 0.01))
    metrics.tell(BatchFired(1, 1, "node-1", [fired(0.0)], [], 0, 0.01))
    assert metrics("scheduler_fires_total") == 3
    assert metrics("scheduler_skips_total", reason="overlap") == 2
    assert metrics("scheduler_skips_total", reason="misfire") == 1
    assert metrics("scheduler_skips_total", reason="window") == 0
    assert metrics("execution_status_total", status="skipped") == 3
    assert metrics("executions_triggered_total", triggered_by="scheduler") == 3


def test_a_skipped_row_that_decides_several_due_times_counts_all_of_them(metrics: Metrics) -> None:
    row = skipped(SkipReason.MISFIRE)._replace(missed_count=59)
    metrics.tell(BatchFired(0, 1, "node-1", [], [row, skipped(SkipReason.MISFIRE)], 0, 0.01))
    assert metrics("scheduler_skips_total", reason="misfire") == 61
    assert metrics("execution_status_total", status="skipped") == 2


def test_executions_are_counted_by_what_asked_for_them(metrics: Metrics) -> None:
    metrics.tell(BackfillAdvanced(ID, "node-1", [fired(0.0), fired(0.0)]))
    for by in (TriggeredBy.MANUAL, TriggeredBy.API, TriggeredBy.API):
        metrics.tell(ExecutionTriggered(ID, ID, "report", 1, FIRE_TS, "default", by, "ann", None))
    counts = [metrics("executions_triggered_total", triggered_by=each) for each in TriggeredBy]
    assert dict(zip(TriggeredBy, counts, strict=True)) == {
        "scheduler": 0,
        "manual": 1,
        "api": 2,
        "backfill": 2,
    }
    assert metrics("scheduler_fires_total") == 2, "what is asked for by hand is not fired by a scheduler"
    assert metrics("scheduler_lateness_seconds_count") == 0, "the past is never late"


def test_lateness_falls_into_buckets_from_a_millisecond_to_a_minute(metrics: Metrics) -> None:
    metrics.tell(BatchFired(0, 1, "node-1", [fired(late_s) for late_s in (90, 0.0005, 0.02, 1)], [], 0, 0.01))
    assert metrics("scheduler_lateness_seconds_bucket", le="0.001") == 1
    assert metrics("scheduler_lateness_seconds_bucket", le="0.025") == 2
    assert metrics("scheduler_lateness_seconds_bucket", le="1.0") == 3
    assert metrics("scheduler_lateness_seconds_bucket", le="60.0") == 3
    assert metrics("scheduler_lateness_seconds_bucket", le="+Inf") == 4
    assert metrics("scheduler_lateness_seconds_count") == 4
    assert metrics("scheduler_lateness_seconds_sum") == pytest.approx(91.0205)


def test_a_batch_histogram_shows_what_one_by_one_would_show() -> None:
    buckets = (0.001, 0.01, 0.1, 1.0)
    batches = [[0.5, 0.001, 0.0011, 7.0, 0.1], [], [0.1, 0.1, 0.0], [100.0]]
    by_batch, one_by_one = CollectorRegistry(), CollectorRegistry()
    histogram = BatchHistogram("x", "text", buckets, by_batch)
    reference = Histogram("x", "text", buckets=buckets, registry=one_by_one)
    for batch in batches:
        for value in batch:
            reference.observe(value)
        histogram.observe(batch)
    [family], [expected] = list(by_batch.collect()), list(one_by_one.collect())
    assert family.type == expected.type == "histogram"
    samples = {(sample.name, sample.labels.get("le")): sample.value for sample in expected.samples}
    samples.pop(("x_created", None))
    assert {(sample.name, sample.labels.get("le")): sample.value for sample in family.samples} == samples


def test_wheels_are_added_up_over_shards_and_the_worst_lag_counts(metrics: Metrics) -> None:
    metrics.tell(TickCompleted(0, 5, 100, 0.5, 0.001), TickCompleted(1, 7, 200, 3.0, 0.002))
    assert metrics("scheduler_wheel_size") == 300
    assert metrics("scheduler_lag_seconds") == 3.0
    assert metrics("scheduler_schedules_checked_total") == 12
    assert metrics("scheduler_tick_duration_seconds_count") == 2
    metrics.tell(TickCompleted(1, 0, 150, 0.0, 0.002))
    assert metrics("scheduler_wheel_size") == 250
    assert metrics("scheduler_lag_seconds") == 0.5


@pytest.mark.parametrize("end", [LeaseLost(1, 4, "no answer"), LeaseReleased(1, 4)])
def test_a_shard_that_is_led_no_more_leaves_the_sums(metrics: Metrics, end: DomainEvent) -> None:
    metrics.tell(LeaderElected(0, 9, "node-1"), LeaderElected(1, 4, "node-1"))
    metrics.tell(TickCompleted(0, 0, 100, 0.5, 0.001), TickCompleted(1, 0, 200, 3.0, 0.001), end)
    metrics.tell(TickCompleted(1, 0, 200, 3.0, 0.001))
    assert metrics("scheduler_wheel_size") == 100
    assert metrics("scheduler_lag_seconds") == 0.5
    assert metrics("scheduler_is_leader", shard="0") == 1
    assert metrics("scheduler_is_leader", shard="1") == 0
    metrics.tell(LeaderElected(1, 6, "node-1"), TickCompleted(1, 0, 50, 0.0, 0.001))
    assert metrics("scheduler_wheel_size") == 150
    assert metrics("scheduler_is_leader", shard="1") == 1
    assert metrics("scheduler_elections_total") == 3


def test_the_lag_is_told_by_whoever_watches_when_nobody_leads_or_a_tick_hangs(metrics: Metrics) -> None:
    metrics.tell(LeaderElected(0, 9, "node-1"), TickCompleted(0, 0, 100, 0.5, 0.001))
    # The tick that is under way hangs, so nothing more is heard of it.
    metrics.tell(OverdueCounted(3, 12.0))
    assert metrics("scheduler_lag_seconds") == 12.0
    metrics.tell(OverdueCounted(3, 17.0), LeaseLost(0, 9, "no answer"))
    assert metrics("scheduler_lag_seconds") == 17.0, "losing the lease decides nothing"
    assert metrics("schedules_overdue") == 3
    metrics.tell(OverdueCounted(0))
    assert metrics("scheduler_lag_seconds") == 0.0


def test_attempts_at_a_lease_count_by_result_and_show_the_shard(metrics: Metrics) -> None:
    metrics.tell(*[LeaseAttempted(2, result) for result in ("held", "held", "contended", "acquired")])
    assert metrics("lease_acquisition_total", result="held") == 2
    assert metrics("lease_acquisition_total", result="contended") == 1
    assert metrics("lease_acquisition_total", result="acquired") == 1
    assert metrics("lock_contention_total") == 1
    assert metrics("scheduler_is_leader", shard="2") == 0


def test_fenced_writes_are_counted(metrics: Metrics) -> None:
    metrics.tell(WriteFenced(0, 1), WriteFenced(1, 1))
    assert metrics("scheduler_fenced_writes_total") == 2


def test_a_start_later_than_its_priority_promises_misses_the_sla(metrics: Metrics) -> None:
    metrics.tell(
        ExecutionsClaimed(
            "worker-1",
            [
                claimed(Priority.HIGH, 1.0),
                claimed(Priority.HIGH, 1.1),
                claimed(Priority.MEDIUM, 4.9),
                claimed(Priority.MEDIUM, 5.1),
                claimed(Priority.MEDIUM, 50.0),
                claimed(Priority.LOW, 29.0),
            ],
        )
    )
    assert metrics("queue_sla_missed_total", priority="high") == 1
    assert metrics("queue_sla_missed_total", priority="medium") == 2
    assert metrics("queue_sla_missed_total", priority="low") == 0
    counts = [metrics("execution_start_delay_seconds_count", priority=each) for each in Priority]
    assert dict(zip(Priority, counts, strict=True)) == {"high": 2, "medium": 3, "low": 1}
    assert metrics("execution_start_delay_seconds_sum", priority="medium") == 60.0


@pytest.mark.parametrize("priority", Priority)
def test_start_delays_have_a_bucket_that_ends_at_each_sla(metrics: Metrics, priority: Priority) -> None:
    delays = [claimed(priority, priority.sla_s), claimed(priority, priority.sla_s + 0.01)]
    metrics.tell(ExecutionsClaimed("worker-1", delays))
    border = f"{priority.sla_s:.1f}"
    assert metrics("execution_start_delay_seconds_bucket", priority=priority, le=border) == 1
    assert metrics("execution_start_delay_seconds_bucket", priority=priority, le="+Inf") == 2


def test_settled_executions_count_by_status_with_their_duration(metrics: Metrics) -> None:
    statuses = [Status.SUCCESS, Status.SUCCESS, Status.FAILED, Status.TIMEOUT, Status.RETRYING]
    metrics.tell(ExecutionsSettled("worker-1", [settled(status, 2.0) for status in statuses], []))
    assert metrics("execution_status_total", status="success") == 2
    assert metrics("execution_status_total", status="failed") == 1
    assert metrics("execution_status_total", status="timeout") == 1
    assert metrics("execution_status_total", status="retrying") == 1
    assert metrics("execution_retries_total") == 1
    assert metrics("execution_duration_seconds_count") == 5
    assert metrics("execution_duration_seconds_sum") == 10.0


def test_what_is_handed_back_has_no_duration(metrics: Metrics) -> None:
    metrics.tell(ExecutionsSettled("worker-1", [settled(Status.PENDING)], []))
    assert metrics("execution_status_total", status="pending") == 1
    assert metrics("execution_duration_seconds_count") == 0


def test_cancelled_executions_are_counted_and_those_that_an_agent_was_at_have_a_duration(
    metrics: Metrics,
) -> None:
    waited = CancelledExecution(ID, ID, 0, "replaced", FIRE_TS)
    with_agent = waited._replace(attempt=1, started_ts=FIRE_TS - timedelta(seconds=3))
    metrics.tell(ExecutionsCancelled([waited, waited, with_agent]))
    assert metrics("execution_status_total", status="cancelled") == 3
    assert metrics("execution_duration_seconds_count") == 1
    assert metrics("execution_duration_seconds_sum") == 3.0


def test_rescued_executions_count_by_what_became_of_them(metrics: Metrics) -> None:
    became = [Status.RETRYING, Status.RETRYING, Status.UNKNOWN]
    metrics.tell(ExecutionsRescued(0, {UUID(int=n): status for n, status in enumerate(became)}))
    assert metrics("worker_rescued_total") == 3
    assert metrics("execution_status_total", status="unknown") == 1
    assert metrics("execution_retries_total") == 2


def test_utilization_is_what_runs_per_capacity_over_all_workers_of_the_process(metrics: Metrics) -> None:
    metrics.tell(WorkerLoadChanged("worker-1", 5, 10))
    assert metrics("worker_utilization") == 0.5
    metrics.tell(WorkerLoadChanged("worker-2", 0, 10))
    assert metrics("worker_utilization") == 0.25
    assert (metrics("worker_running"), metrics("worker_capacity")) == (5, 20)
    metrics.tell(WorkerLoadChanged("worker-1", 0, 0), WorkerLoadChanged("worker-2", 0, 0))
    assert metrics("worker_utilization") == 0.0


def test_errors_of_agents_count_by_codes_that_http_knows(metrics: Metrics) -> None:
    told = ["503", "503", "none", "timeout", "418", "299", "999", "1234"]
    metrics.tell(*[AgentFailed(code) for code in told])
    counts = {
        code: metrics("agent_http_errors_total", status_code=code)
        for code in ("503", "none", "timeout", "418", "other")
    }
    assert counts == {"503": 2, "none": 1, "timeout": 1, "418": 1, "other": 3}
    assert metrics("agent_http_errors_total", status_code="999") is None


def depth(high: int = 0, medium: int = 0, low: int = 0) -> dict[Priority, int]:
    return {Priority.HIGH: high, Priority.MEDIUM: medium, Priority.LOW: low}


def test_queues_show_what_was_measured_last_and_vanish_when_they_are_gone(metrics: Metrics) -> None:
    metrics.tell(QueuesMeasured({"mail": depth(high=3), "reports": depth(low=7)}))
    assert metrics("queue_depth", queue="mail", priority="high") == 3
    assert metrics("queue_depth", queue="mail", priority="low") == 0
    metrics.tell(QueuesMeasured({"mail": depth()}))
    assert metrics("queue_depth", queue="mail", priority="high") == 0
    assert metrics("queue_depth", queue="reports", priority="low") is None


def test_the_default_queue_is_shown_whether_anybody_measures_or_not(metrics: Metrics) -> None:
    assert metrics("queue_depth", queue="default", priority="high") == 0
    metrics.tell(QueuesMeasured({}))
    assert metrics("queue_depth", queue="default", priority="high") == 0
    metrics.tell(QueuesMeasured({"default": depth(high=3)}))
    assert metrics("queue_depth", queue="default", priority="high") == 3
    assert metrics("queue_depth", queue="default", priority="low") == 0


def test_of_many_queues_the_deepest_are_shown_and_stay_and_the_rest_is_one(metrics: Metrics) -> None:
    depths = {f"queue-{number:03}": depth(medium=number) for number in range(MAX_QUEUES + 50)}
    metrics.tell(QueuesMeasured(depths))
    assert metrics("queue_depth", queue="queue-149", priority="medium") == 149
    assert metrics("queue_depth", queue="queue-049", priority="medium") is None
    assert metrics("queue_depth", queue="other", priority="medium") == sum(range(50))
    # Others grow deeper: a series that is shown does not end for that, and nothing is counted twice.
    depths["queue-000"] = depth(medium=10_000)
    metrics.tell(QueuesMeasured(depths))
    assert metrics("queue_depth", queue="queue-000", priority="medium") is None
    assert metrics("queue_depth", queue="other", priority="medium") == 10_000 + sum(range(50))
    assert metrics("queue_depth", queue="queue-149", priority="medium") == 149
    # One that is gone makes room.
    del depths["queue-149"]
    metrics.tell(QueuesMeasured(depths))
    assert metrics("queue_depth", queue="queue-000", priority="medium") == 10_000
    assert metrics("queue_depth", queue="other", priority="medium") == sum(range(50))


def test_shards_that_are_no_more_are_not_missed(metrics: Metrics) -> None:
    metrics.tell(*[LeaseAttempted(shard, "held") for shard in range(4)], SchedulesCounted(7, 4))
    assert (metrics("schedules_active"), metrics("scheduler_shards")) == (7, 4)
    assert metrics("scheduler_is_leader", shard="3") == 0
    metrics.tell(SchedulesCounted(8, 2))
    assert metrics("scheduler_shards") == 2
    assert [metrics("scheduler_is_leader", shard=f"{shard}") for shard in range(4)] == [0, 0, None, None]
    metrics.tell(LeaderElected(3, 9, "node-1"))
    assert metrics("scheduler_is_leader", shard="3") == 1


@pytest.mark.parametrize("end", [LeaseLost(3, 9, "told to"), LeaseReleased(3, 9)])
def test_a_shard_that_was_counted_out_does_not_come_back_when_its_lease_ends(
    metrics: Metrics, end: DomainEvent
) -> None:
    metrics.tell(LeaderElected(3, 9, "node-1"), SchedulesCounted(8, 2), end)
    assert metrics("scheduler_is_leader", shard="3") is None


def test_a_group_has_its_counters_before_its_first_event(metrics: Metrics) -> None:
    metrics.tell(ConsumerLagChanged("mail", 1))
    assert metrics("consumer_dead_events_total", group="mail") == 0
    metrics.tell(EventsConsumed("mail", 0, 0, 1, 0.1))
    assert metrics("consumer_dead_events_total", group="mail") == 1


def test_failed_steps_count_by_service_and_refused_credentials_in_all(metrics: Metrics) -> None:
    failures = [ServiceFailed(name, "told to", 1.0) for name in ("relay", "relay", "worker")]
    metrics.tell(*failures, CredentialRefused("expired", "127.0.0.1", "1"))
    assert metrics("service_failures_total", service="relay") == 2
    assert metrics("service_failures_total", service="worker") == 1
    assert metrics("credentials_refused_total") == 1


def test_failed_calls_of_redis_count_by_what_they_were_for(metrics: Metrics) -> None:
    metrics.tell(*[RedisFailed(what, "told to") for what in (*REDIS_USES, "lease")])
    counts = [metrics("redis_errors_total", what=what) for what in REDIS_USES]
    assert dict(zip(REDIS_USES, counts, strict=True)) == dict.fromkeys(REDIS_USES, 1) | {"lease": 2}


def test_an_event_that_cannot_be_counted_does_not_reach_the_core(
    metrics: Metrics, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics.tell(LeaseAttempted(0, "never heard of"), LeaseAttempted(0, "never heard of"))
    captured = capsys.readouterr()
    assert (captured.out + captured.err).count("observer_failed") == 1
    metrics.tell(LeaseAttempted(0, "held"))
    assert metrics("lease_acquisition_total", result="held") == 1


def test_two_registries_do_not_share_anything(metrics: Metrics) -> None:
    metrics.tell(WriteFenced(0, 1))
    assert Metrics()("scheduler_fenced_writes_total") == 0


def test_requests_are_counted_under_labels_that_callers_cannot_multiply() -> None:
    registry = CollectorRegistry()
    observer = MetricsObserver(registry)
    for method, status in (("GET", 200), ("GET", 200), ("BREW", 200), ("POST", 799)):
        observer.notify(RequestAnswered(method, "/api/v1/schedules", status, 0.02, "r1"))

    def counted(method: str, status_code: str) -> float | None:
        return registry.get_sample_value(
            "foliot_api_requests_total", {"method": method, "status_code": status_code}
        )

    assert (counted("GET", "200"), counted("other", "200"), counted("POST", "other")) == (2, 1, 1)
    assert (counted("BREW", "200"), counted("GET", "500")) == (None, 0)
    assert registry.get_sample_value("foliot_api_request_duration_seconds_count", {"method": "GET"}) == 2


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_are_not_counted_with_the_requests(metrics: Metrics, path: str) -> None:
    metrics.tell(RequestAnswered("GET", path, 200, 0.001, "r1"))
    assert metrics("api_requests_total", method="GET", status_code="200") == 0
    assert metrics("api_request_duration_seconds_count", method="GET") == 0
