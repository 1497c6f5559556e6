"""The page about metrics, the dashboard and the alerts speak of metrics that are there."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from foliot.api.probe_server import ProbeServer
from foliot.instance.runtime import Instance
from foliot.instance.spec import InstanceSpec
from foliot.model.delivery_events import ConsumerLagChanged, EventsConsumed, TransportLost
from foliot.model.event import DomainEvent
from foliot.model.instance_events import LeaseProviderReached, ServiceFailed
from foliot.telemetry.health.probes import Probes
from foliot.timing.clock import SystemClock
from tests.engine import noop, quick_settings, registry
from tests.exposition import Exported, read_exposition

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/metrics.md"
ALERTS = ROOT / "deploy/prometheus/alerts.yml"
ALERTS_TEST = ALERTS.with_name("alerts_test.yml")
DASHBOARD = ROOT / "deploy/grafana/foliot.json"

PROMISED = [
    "scheduler_tick_duration_seconds",
    "scheduler_fires_total",
    "scheduler_skips_total{reason}",
    "scheduler_lateness_seconds",
    "scheduler_lag_seconds",
    "scheduler_wheel_size",
    "scheduler_elections_total",
    "scheduler_is_leader{shard}",
    "scheduler_fenced_writes_total",
    "lease_acquisition_total{result}",
    "queue_depth{queue,priority}",
    "queue_sla_missed_total{priority}",
    "execution_status_total{status}",
    "execution_duration_seconds",
    "execution_retries_total",
    "execution_start_delay_seconds{priority}",
    "executions_triggered_total{triggered_by}",
    "worker_utilization",
    "worker_rescued_total",
    "agent_http_errors_total{status_code}",
    "outbox_lag",
    "db_pool_in_use{pool}",
    "redis_errors_total{what}",
    "schedules_active",
    "schedules_overdue",
    "scheduler_schedules_checked_total",
    "lock_contention_total",
]

ASKED_FOR = {
    "Tasks scheduled per second": "scheduler_fires_total",
    "Time wheel size": "scheduler_wheel_size",
    "Queue depth": "queue_depth",
    "Leader election count": "scheduler_elections_total",
    "Scheduling latency": "scheduler_lateness_seconds",
    "Tasks executed per second": "execution_duration_seconds",
    "Execution duration (P50, P95, P99)": "execution_duration_seconds",
    "Success rate": "execution_status_total",
    "Failure rate": "execution_status_total",
    "Worker utilization": "worker_utilization",
    "Total active tasks": "schedules_active",
    "Overdue tasks": "schedules_overdue",
    "Failed tasks": "execution_status_total",
    "Retry count": "execution_retries_total",
    "Lock contention": "lock_contention_total",
    "scheduler_tick_duration_ms": "scheduler_tick_duration_seconds",
    "scheduler_schedules_checked_total": "scheduler_schedules_checked_total",
    "scheduler_lock_acquisition_success_rate": "lease_acquisition_total",
    "scheduler_execution_trigger_total": "executions_triggered_total",
    'execution_status_total{status="success|failed"}': "execution_status_total",
    "execution_duration_ms": "execution_duration_seconds",
    "execution_retry_count": "execution_retries_total",
    "agent_http_error_total{status_code}": "agent_http_errors_total",
    "postgres_connection_pool_active": "db_pool_in_use",
    "redis_connection_errors_total": "redis_errors_total",
}
"""Every item of the two designs that list metrics."""

SHOWN_WHEN_THEY_HAPPEN: list[DomainEvent] = [
    LeaseProviderReached("etcd", "http://127.0.0.1:1", 0.0),
    TransportLost("redis", "redis://127.0.0.1:1", "told to"),
    EventsConsumed("group", 0, 1, 0, 0.1),
    ConsumerLagChanged("group", 1),
    ServiceFailed("relay", "told to", 1.0),
]
"""Metrics whose labels are not known beforehand have no sample before."""


async def read_instance(url: str) -> str:
    """What a real instance exports, over HTTP."""
    probes = Probes(SystemClock())
    plan = InstanceSpec(
        settings=quick_settings(url), tasks=registry(noop), upgrades_schema=True, observers=probes.observers
    )
    instance = Instance(plan)
    instance.show(probes)
    async with ProbeServer(probes).listening("127.0.0.1", 0) as address:
        await instance.start()
        try:
            for event in SHOWN_WHEN_THEY_HAPPEN:
                instance.observer.notify(event)
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(address).port)
            writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
            async with asyncio.timeout(30):
                answer = (await reader.read()).decode()
            writer.close()
        finally:
            await instance.stop()
    head, _, text = answer.partition("\r\n\r\n")
    assert "200 OK" in head
    return text


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exported]:
    url = f"sqlite:///{tmp_path_factory.mktemp('metrics') / 'foliot.db'}"
    return read_exposition(asyncio.run(read_instance(url)))


def rows(page: str) -> Iterator[list[str]]:
    """Cells of all tables; a bar that is meant is written with a backslash."""
    for line in page.splitlines():
        if line.startswith("| ") and not line.startswith("|---"):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            yield [cell.strip().replace(r"\|", "|") for cell in cells]


# --- the page ----------------------------------------------------------------------------------------------


def test_the_page_tells_of_every_metric_with_its_type_and_labels_and_of_no_other(
    exported: dict[str, Exported],
) -> None:
    told = {
        cells[0].strip("`"): (cells[1], frozenset(re.findall(r"`(\w+)`", cells[2])))
        for cells in rows(PAGE.read_text())
        if len(cells) == 5 and cells[0].startswith("`foliot_")
    }
    there = {
        name: (metric.kind, metric.labels) for name, metric in exported.items() if name.startswith("foliot_")
    }
    assert told == there
    assert all(cells[3] and cells[4] for cells in rows(PAGE.read_text()) if len(cells) == 5)


def test_every_promised_metric_is_exported_with_its_labels(exported: dict[str, Exported]) -> None:
    for promise in PROMISED:
        name, _, labels = promise.partition("{")
        metric = exported[f"foliot_{name}"]
        assert metric.samples, name
        assert metric.labels == frozenset(filter(None, labels.rstrip("}").split(","))), name


def test_metrics_of_the_process_are_told_and_exported(exported: dict[str, Exported]) -> None:
    told = set(re.findall(r"`((?:process|python)_\w+)`", PAGE.read_text()))
    assert told == {name for name in exported if name.startswith(("process_", "python_"))}


def test_what_the_designs_ask_for_is_found_item_by_item(exported: dict[str, Exported]) -> None:
    page = PAGE.read_text()
    found = {
        cells[0].strip("`"): cells[1]
        for cells in rows(page[page.index("## By other names") :])
        if len(cells) == 2
    }
    found.pop("asked for")
    assert found.keys() == ASKED_FOR.keys()
    for item, name in ASKED_FOR.items():
        assert f"foliot_{name}" in exported
        assert names_in(found[item]) == {f"foliot_{name}"}, item


# --- what is asked of Prometheus ---------------------------------------------------------------------------

LABELS_OF_PROMETHEUS = {"instance", "job", "le"}


def names_in(expression: str) -> set[str]:
    """The metrics of an expression, without the suffixes of histograms."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    names = set(re.findall(r"(?<![\w$])(?:foliot|process|python)_\w+|(?<![\w$])up(?=\{)", bare))
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in names} - {"up"}


def labels_in(expression: str) -> set[str]:
    grouped = re.findall(r"\b(?:by|on|group_left|without|ignoring) \(([^)]*)\)", expression)
    matched = re.findall(r"[{,]\s*(\w+)\s*(?:=~|!~|!=|=)", expression)
    return {each.strip() for part in grouped for each in part.split(",") if each.strip()} | set(matched)


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> dict[str, str]:
    """By where they stand."""
    of_panels = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in panels()
        for target in panel.get("targets", ())
    }
    return {rule["alert"]: rule["expr"] for rule in alerts()} | of_panels


def test_every_metric_and_label_of_dashboard_and_alerts_is_exported(exported: dict[str, Exported]) -> None:
    for where, expression in expressions().items():
        names = names_in(expression)
        assert names or "up{" in expression, where
        assert names <= exported.keys(), where
        known = frozenset[str]().union(*(exported[name].labels for name in names))
        assert labels_in(expression) <= known | LABELS_OF_PROMETHEUS, where


def test_the_dashboard_has_a_row_for_each_part_and_no_panel_twice() -> None:
    titles = [panel["title"] for panel in panels()]
    assert len(set(titles)) == len(titles)
    assert len({panel["id"] for panel in panels()}) == len(titles)
    told = [panel["title"] for panel in panels() if panel["type"] == "row"]
    assert told == [
        "Overview",
        "Scheduler",
        "Queues",
        "Workers",
        "Outbox and brokers",
        "API, processes and servers",
    ]
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_alert_says_what_to_do_and_the_page_has_more_of_it() -> None:
    headings = set(re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE))
    assert headings == {rule["alert"] for rule in alerts()}
    for rule in alerts():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "runbook", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"docs/metrics.md#{rule['alert'].lower()}"


# --- what Prometheus says ----------------------------------------------------------------------------------


def promtool(*arguments: str | Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        raise RuntimeError("promtool is not installed: `make test` installs Debian's prometheus, or says how")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_understands_the_alerts() -> None:
    promtool("check", "rules", ALERTS)


def test_the_alerts_fire_when_they_should_and_not_before() -> None:
    promtool("test", "rules", ALERTS_TEST)


def test_prometheus_understands_the_dashboard(tmp_path: Path) -> None:
    variables = {"$__rate_interval": "5m", "$instance": ".*"}
    rules = []
    for number, expression in enumerate(expressions().values()):
        for name, value in variables.items():
            expression = expression.replace(name, value)
        rules.append({"record": f"panel:{number}", "expr": expression})
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", file)
