"""Every alert fires in the trouble that it is for, and none in an idle cluster that has just started."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from foliot.instance.runtime import Instance
from foliot.instance.spec import InstanceSpec
from foliot.telemetry.health.probes import Probes
from foliot.timing.clock import SystemClock
from tests.engine import noop, quick_settings, registry, until
from tests.exposition import read_exposition

ALERTS = Path(__file__).parents[2] / "deploy/prometheus/alerts.yml"
MINUTES = 60

EVERY_TWO_MINUTES = " ".join(str(minute // 2) for minute in range(MINUTES + 1))
"""A counter that rises by one so often."""

TROUBLE: dict[str, Mapping[str, str]] = {
    "FoliotLeaderMissing": {
        "foliot_scheduler_shards": "2x60",
        'foliot_scheduler_is_leader{shard="0"}': "1x60",
    },
    "FoliotSchedulersMissing": {"foliot_scheduler_shards": "0x60"},
    "FoliotSchedulesOverdue": {"foliot_schedules_overdue": "3x60"},
    "FoliotSchedulerLag": {"foliot_scheduler_lag_seconds": "6x60"},
    "FoliotFiringLate": {
        'foliot_scheduler_lateness_seconds_bucket{le="1"}': "0+1x60",
        'foliot_scheduler_lateness_seconds_bucket{le="5"}': "0+9x60",
        'foliot_scheduler_lateness_seconds_bucket{le="+Inf"}': "0+9x60",
    },
    "FoliotLeadersChange": {
        "foliot_scheduler_elections_total": EVERY_TWO_MINUTES,
        "foliot_scheduler_shards": "1x60",
    },
    "FoliotFencedWrites": {"foliot_scheduler_fenced_writes_total": "0x50 1x10"},
    "FoliotLeaseProviderDown": {'foliot_lease_provider_up{provider="etcd"}': "0x60"},
    "FoliotSlaMissed": {
        'foliot_queue_sla_missed_total{priority="high"}': "0+2x60",
        'foliot_execution_start_delay_seconds_count{priority="high"}': "0+100x60",
        'foliot_execution_start_delay_seconds_count{priority="low"}': "0+10000x60",
    },
    "FoliotExecutionsFailing": {
        'foliot_execution_status_total{status="unknown"}': "0+1x60",
        'foliot_execution_status_total{status="success"}': "0+5x60",
    },
    "FoliotAgentsFailing": {'foliot_agent_http_errors_total{status_code="timeout"}': "0+10x60"},
    "FoliotQueueGrowing": {'foliot_queue_depth{queue="mail",priority="low"}': "100+1x60"},
    "FoliotNoWorkers": {
        'foliot_queue_depth{queue="mail",priority="low"}': "1x60",
        'foliot_worker_capacity{instance="scheduler"}': "0x60",
    },
    "FoliotWorkersBusy": {"foliot_worker_running": "19x60", "foliot_worker_capacity": "20x60"},
    "FoliotWorkersVanish": {"foliot_worker_rescued_total": "0x50 1x10"},
    "FoliotOutboxLag": {"foliot_outbox_lag": "1001x60"},
    "FoliotRelayMissing": {
        'foliot_outbox_lag{instance="scheduler"}': "1x60",
        'foliot_relay_is_active{instance="scheduler"}': "0x60",
    },
    "FoliotConsumerLag": {'foliot_consumer_lag{group="mail"}': "1001x60"},
    "FoliotDeadLetters": {'foliot_consumer_dead_events_total{group="mail"}': "0x50 1x10"},
    "FoliotTransportAway": {'foliot_transport_is_away{kind="kafka"}': "1x60"},
    "FoliotProcessDown": {'up{job="foliot"}': "0x60"},
    "FoliotApiErrors": {
        'foliot_api_requests_total{method="GET",status_code="200"}': "0+90x60",
        'foliot_api_requests_total{method="GET",status_code="503"}': "0+3x60",
    },
    "FoliotApiSlow": {
        'foliot_api_request_duration_seconds_bucket{method="GET",le="1"}': "0+90x60",
        'foliot_api_request_duration_seconds_bucket{method="GET",le="5"}': "0+99x60",
        'foliot_api_request_duration_seconds_bucket{method="GET",le="+Inf"}': "0+99x60",
    },
    "FoliotNotificationsDead": {
        'foliot_notifications_total{kind="schedule.failed",result="dead"}': "0x50 1x10"
    },
    "FoliotServiceFailing": {'foliot_service_failures_total{service="relay"}': "0+20x60"},
    "FoliotDatabasePoolFull": {
        'foliot_db_pool_in_use{pool="api"}': "10x60",
        'foliot_db_pool_size{pool="api"}': "10x60",
    },
    "FoliotReplicaLag": {"foliot_replica_lag_seconds": "31x60"},
    "FoliotClockOffset": {"foliot_clock_offset_seconds": "-2x60"},
    "FoliotRedisErrors": {'foliot_redis_errors_total{what="hints"}': "0+10x60"},
}


def alerts() -> list[str]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


def firing(name: str, expected: int, minute: int) -> dict[str, Any]:
    """An assertion on how many alerts of this name fire at a minute."""
    count = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'
    return {
        "expr": count,
        "eval_time": f"{minute}m",
        "exp_samples": [{"labels": "{}", "value": expected}],
    }


def promtool(tests: list[dict[str, Any]], tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        raise RuntimeError("promtool is not installed: `make test` installs Debian's prometheus, or says how")
    document = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}
    path = tmp_path / "tests.yml"
    path.write_text(yaml.safe_dump(document))
    ended = subprocess.run([program, "test", "rules", path], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_alert_fires_in_the_trouble_that_it_is_for(tmp_path: Path) -> None:
    assert set(TROUBLE) == set(alerts())
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": key, "values": values} for key, values in series.items()],
            "promql_expr_test": [firing(name, 1, 55)],
        }
        for name, series in TROUBLE.items()
    ]
    promtool(tests, tmp_path)


async def idle_page(url: str) -> str:
    """What an instance with all roles exports that has nothing to do yet."""
    probes = Probes(SystemClock())
    instance = Instance(
        InstanceSpec(
            settings=quick_settings(url),
            tasks=registry(noop),
            upgrades_schema=True,
            observers=probes.observers,
        )
    )
    instance.show(probes)
    await instance.start()

    page = ""

    def is_settled() -> bool:
        nonlocal page
        page = probes.page.render("")[0].decode()
        found = read_exposition(page)
        return (
            found["foliot_scheduler_shards"][()] == 1
            and found["foliot_scheduler_is_leader"]["0"] == 1
            and found["foliot_worker_capacity"][()] > 0
            # Between two looks of its services.
            and not any(found["foliot_db_pool_in_use"].samples.values())
        )

    try:
        await until(is_settled)
    finally:
        await instance.stop()
    return page


def series_of(page: str) -> Iterator[dict[str, str]]:
    """From a first scrape, of a process that has done nothing yet, to an hour later."""
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            is_counted = family.type in ("counter", "histogram")
            labels = ",".join(
                f'{key}="{value}"' for key, value in {**sample.labels, "instance": "one"}.items()
            )
            values = f"{0 if is_counted else sample.value} {sample.value}x{MINUTES}"
            yield {"series": f"{sample.name}{{{labels}}}", "values": values}


async def test_no_alert_fires_in_a_cluster_that_has_just_started_and_is_idle(
    sqlite_url: str, tmp_path: Path
) -> None:
    series = [*series_of(await idle_page(sqlite_url))]
    series.append({"series": 'up{job="foliot",instance="one"}', "values": f"1x{MINUTES}"})
    # It has met all that they look at.
    names = {each["series"].partition("{")[0] for each in series}
    assert {"foliot_scheduler_elections_total", "foliot_api_requests_total", "foliot_db_pool_in_use"} <= names
    quiet = [firing(name, 0, minute) for name in alerts() for minute in (2, 7, 16, 59)]
    promtool([{"interval": "1m", "input_series": series, "promql_expr_test": quiet}], tmp_path)
