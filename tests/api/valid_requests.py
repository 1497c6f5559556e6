"""For every route, a request that succeeds with sufficient rights. Each new route needs an entry here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from foliot.api.access.access_table import ACCESS
from tests.api.hosts import Host, on_call, unique, yearly

V1 = "/api/v1"
SCHEDULE = f"{V1}/schedules/{{schedule_id}}"
EXECUTION = f"{V1}/executions/{{execution_id}}"
RULE = f"{V1}/notifications/rules/{{rule_id}}"
ICAL = "\r\n".join(
    [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//test//EN",
        "BEGIN:VEVENT",
        "UID:1",
        "DTSTART;VALUE=DATE:20300101",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
)


@dataclass(frozen=True)
class Ask:
    """A request of a route: values for its path, and options of the client."""

    named: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: httpx2.Headers
    text: str


def send(client: httpx2.Client, method: str, path: str, ask: Ask) -> Answer:
    """Send the request. Do not read the body of an event stream, which never ends."""
    with client.stream(method, path.format(**ask.named), **ask.options) as answer:
        is_endless = answer.headers.get("content-type", "").startswith("text/event-stream")
        text = "" if is_endless else answer.read().decode()
        return Answer(answer.status_code, answer.headers, text)


def _plain(_host: Host) -> Ask:
    return Ask()


def _body(make: Callable[[Host], Any]) -> Callable[[Host], Ask]:
    return lambda host: Ask(options={"json": make(host)})


def _of(what: str, **options: Any) -> Callable[[Host], Ask]:
    """Return a maker of requests about a thing of the host, created for that request only."""

    def make(host: Host) -> Ask:
        names = {"schedule": "schedule_id", "backfill": "backfill_id", "calendar": "name", "secret": "name"}
        names |= {"rule": "rule_id", "dead_notification": "notification_id"}
        name = names.get(what, "execution_id")
        return Ask({name: getattr(host, what)()}, options)

    return make


def _dead_letter(host: Host) -> Ask:
    return Ask({"dead_letter_id": host.dead_letter()})


def _by_agent(body: dict[str, Any]) -> Callable[[Host], Ask]:
    def make(host: Host) -> Ask:
        execution_id, token = host.running_execution()
        return Ask({"execution_id": execution_id}, {"json": body, "headers": {"X-Foliot-Token": token}})

    return make


def _version(host: Host) -> Ask:
    return Ask({"schedule_id": host.schedule(), "version": "1"})


def _this_instance(host: Host) -> Ask:
    """Ask for the instance that answers. Register it first: that happens shortly after its start."""
    host.served.run(host.served.instance._presence.step())
    return Ask({"instance_id": host.served.instance.instance_id})


RANGE = {"from_ts": "2020-01-01T00:00:00Z", "to_ts": "2023-01-01T00:00:00Z"}
SPAN = {"from": "2030-01-01T00:00:00Z", "to": "2030-01-02T00:00:00Z"}

VALID: dict[tuple[str, str], Callable[[Host], Ask]] = {
    ("GET", "/"): _plain,
    ("GET", "/healthz"): _plain,
    ("GET", "/readyz"): _plain,
    ("HEAD", "/healthz"): _plain,
    ("HEAD", "/readyz"): _plain,
    ("HEAD", "/metrics"): _plain,
    ("GET", "/metrics"): _plain,
    ("GET", "/openapi.json"): _plain,
    ("GET", "/sign-in"): _plain,
    ("POST", "/sign-in"): _body(lambda host: {"key": host.keys["viewer"]}),
    ("POST", "/sign-out"): _plain,
    ("GET", f"{V1}/schedules"): _plain,
    ("POST", f"{V1}/schedules"): _body(lambda _host: yearly()),
    ("POST", f"{V1}/schedules/preview"): _body(lambda _host: {"trigger": {"kind": "interval", "hours": 1}}),
    ("POST", f"{V1}/schedules/bulk"): _body(
        lambda host: {"action": "pause", "schedule_ids": [host.schedule()]}
    ),
    ("POST", f"{V1}/schedules/apply"): _body(lambda _host: {"schedules": [yearly()], "source": unique()}),
    ("GET", SCHEDULE): _of("schedule"),
    ("PUT", SCHEDULE): lambda host: Ask({"schedule_id": host.schedule()}, {"json": yearly()}),
    ("PATCH", SCHEDULE): _of("schedule", json={"description": "changed"}),
    ("DELETE", SCHEDULE): _of("schedule"),
    ("POST", f"{SCHEDULE}/pause"): _of("schedule"),
    ("POST", f"{SCHEDULE}/resume"): _of("schedule"),
    ("POST", f"{SCHEDULE}/trigger"): _of("schedule"),
    ("POST", f"{SCHEDULE}/backfill"): _of("schedule", json=RANGE),
    ("GET", f"{SCHEDULE}/backfills"): _of("schedule"),
    ("GET", f"{SCHEDULE}/fires"): _of("schedule"),
    ("GET", f"{SCHEDULE}/executions"): _of("schedule"),
    ("GET", f"{SCHEDULE}/stats"): _of("schedule"),
    ("GET", f"{SCHEDULE}/versions"): _of("schedule"),
    ("GET", f"{SCHEDULE}/versions/{{version}}"): _version,
    ("POST", f"{SCHEDULE}/versions/{{version}}/restore"): _version,
    ("GET", f"{V1}/backfills/{{backfill_id}}"): _of("backfill"),
    ("POST", f"{V1}/backfills/{{backfill_id}}/cancel"): _of("backfill"),
    ("GET", f"{V1}/executions"): _plain,
    ("POST", f"{V1}/executions/bulk"): _body(
        lambda host: {"action": "cancel", "execution_ids": [host.execution()]}
    ),
    ("GET", EXECUTION): _of("execution"),
    ("POST", f"{EXECUTION}/retry"): _of("cancelled_execution"),
    ("POST", f"{EXECUTION}/cancel"): _of("execution"),
    ("GET", f"{EXECUTION}/attempts"): _of("execution"),
    ("GET", f"{EXECUTION}/logs"): _of("execution"),
    ("POST", f"{EXECUTION}/progress"): _by_agent({"fraction": 0.5}),
    ("POST", f"{EXECUTION}/complete"): _by_agent({"status": "success"}),
    ("GET", f"{V1}/kinds"): _plain,
    ("GET", f"{V1}/task-functions"): _plain,
    ("GET", f"{V1}/task-functions/{{name}}"): lambda _host: Ask({"name": "noop"}),
    ("PATCH", f"{V1}/task-functions/{{name}}"): lambda _host: Ask(
        {"name": "tell"}, {"json": {"is_active": True}}
    ),
    ("GET", f"{V1}/instances"): _plain,
    ("POST", f"{V1}/instances/{{instance_id}}/drain"): _this_instance,
    ("POST", f"{V1}/instances/{{instance_id}}/resume"): _this_instance,
    ("GET", f"{V1}/cluster"): _plain,
    ("POST", f"{V1}/cluster/reshard"): _body(lambda _host: {"shards": 1}),
    ("GET", f"{V1}/queues"): _plain,
    ("POST", f"{V1}/queues/{{name}}/pause"): lambda _host: Ask({"name": unique("queue")}),
    ("POST", f"{V1}/queues/{{name}}/resume"): lambda _host: Ask({"name": unique("queue")}),
    ("GET", f"{V1}/calendars"): _plain,
    ("POST", f"{V1}/calendars"): _body(lambda _host: {"name": unique("calendar"), "days": ["2030-01-01"]}),
    ("POST", f"{V1}/calendars/import"): _body(lambda _host: {"name": unique("calendar"), "ical": ICAL}),
    ("GET", f"{V1}/calendars/{{name}}"): _of("calendar"),
    ("PUT", f"{V1}/calendars/{{name}}"): _of("calendar", json={"days": ["2031-01-01"]}),
    ("DELETE", f"{V1}/calendars/{{name}}"): _of("calendar"),
    ("GET", f"{V1}/secrets"): _plain,
    ("POST", f"{V1}/secrets"): _body(lambda _host: {"name": unique("secret"), "value": "a value"}),
    ("POST", f"{V1}/secrets/rotate"): _plain,
    ("DELETE", f"{V1}/secrets/{{name}}"): _of("secret"),
    ("GET", f"{V1}/notifications"): _plain,
    ("GET", f"{V1}/notifications/{{notification_id}}"): _of("dead_notification"),
    ("POST", f"{V1}/notifications/{{notification_id}}/retry"): _of("dead_notification"),
    ("GET", f"{V1}/notifications/rules"): _plain,
    ("POST", f"{V1}/notifications/rules"): _body(lambda _host: on_call()),
    ("GET", RULE): _of("rule"),
    ("PUT", RULE): lambda host: Ask({"rule_id": host.rule()}, {"json": on_call()}),
    ("PATCH", RULE): _of("rule", json={"enabled": False}),
    ("DELETE", RULE): _of("rule"),
    ("POST", f"{RULE}/test"): _of("rule"),
    ("POST", f"{V1}/sign-in-links"): _plain,
    ("GET", f"{V1}/keys"): _plain,
    ("POST", f"{V1}/keys"): _body(lambda _host: {"name": unique("key"), "role": "viewer"}),
    ("DELETE", f"{V1}/keys/{{key_id}}"): lambda host: Ask({"key_id": host.key()[0]}),
    ("GET", f"{V1}/hosts"): _plain,
    ("POST", f"{V1}/hosts"): _body(lambda _host: {"name": unique("host")}),
    ("GET", f"{V1}/audit"): _plain,
    ("GET", f"{V1}/me"): _plain,
    ("GET", f"{V1}/events"): _plain,
    ("GET", f"{V1}/events/groups"): _plain,
    ("DELETE", f"{V1}/events/groups"): lambda host: Ask(options={"params": {"group": host.event_group()}}),
    ("GET", f"{V1}/events/relays"): _plain,
    ("DELETE", f"{V1}/events/relays"): lambda host: Ask(options={"params": {"name": host.event_relay()}}),
    ("GET", f"{V1}/events/dead-letters"): _plain,
    ("POST", f"{V1}/events/dead-letters/{{dead_letter_id}}/replay"): _dead_letter,
    ("DELETE", f"{V1}/events/dead-letters/{{dead_letter_id}}"): _dead_letter,
    ("GET", f"{V1}/status"): _plain,
    ("GET", f"{V1}/timeline"): lambda _host: Ask(options={"params": SPAN}),
    ("GET", f"{V1}/load"): _plain,
    ("GET", f"{V1}/stream"): _plain,
}

ROUTES = sorted(ACCESS)
IDS = [f"{method} {path}" for method, path in ROUTES]
