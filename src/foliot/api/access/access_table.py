"""The access table: which role each route requires. A route without an entry is refused.

A test compares the application's routes with this table, and fails for a route without an entry.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from foliot.access.principal import Role


class Open(StrEnum):
    """Access rules for routes that require no role."""

    ANYBODY = "anybody"
    """Public: the response contains nothing confidential."""
    PROBE = "probe"
    """Public and without a rate limit, because machines call it every few seconds."""
    AGENT = "agent"
    """Requires the callback token of the agent that received the attempt."""
    SIGNED_IN = "signed in"
    """Requires any valid credential."""
    KEY_HOLDER = "operator's key"
    """Requires the operator's own key, FOLIOT_ADMIN_KEY."""


@dataclass(frozen=True, slots=True)
class Home:
    """Requires a role in the default host, which is the operator's. For routes that affect all hosts."""

    role: Role


Access = Role | Open | Home

_V1 = "/api/v1"
_OF_SCHEDULE = f"{_V1}/schedules/{{schedule_id}}"
_OF_EXECUTION = f"{_V1}/executions/{{execution_id}}"
_OF_RULE = f"{_V1}/notifications/rules/{{rule_id}}"

ACCESS: dict[tuple[str, str], Access] = {
    ("GET", "/"): Open.PROBE,
    ("GET", "/healthz"): Open.PROBE,
    ("HEAD", "/healthz"): Open.PROBE,
    ("GET", "/readyz"): Open.PROBE,
    ("HEAD", "/readyz"): Open.PROBE,
    ("GET", "/metrics"): Open.PROBE,
    ("HEAD", "/metrics"): Open.PROBE,
    ("GET", "/openapi.json"): Open.PROBE,
    ("GET", "/sign-in"): Open.ANYBODY,
    ("POST", "/sign-in"): Open.ANYBODY,
    ("POST", "/sign-out"): Open.SIGNED_IN,
    # schedules
    ("GET", f"{_V1}/schedules"): Role.VIEWER,
    ("POST", f"{_V1}/schedules"): Role.EDITOR,
    ("POST", f"{_V1}/schedules/preview"): Role.VIEWER,
    ("POST", f"{_V1}/schedules/bulk"): Role.OPERATOR,
    ("POST", f"{_V1}/schedules/apply"): Role.EDITOR,
    ("GET", _OF_SCHEDULE): Role.VIEWER,
    ("PUT", _OF_SCHEDULE): Role.EDITOR,
    ("PATCH", _OF_SCHEDULE): Role.EDITOR,
    ("DELETE", _OF_SCHEDULE): Role.EDITOR,
    ("POST", f"{_OF_SCHEDULE}/pause"): Role.OPERATOR,
    ("POST", f"{_OF_SCHEDULE}/resume"): Role.OPERATOR,
    ("POST", f"{_OF_SCHEDULE}/trigger"): Role.OPERATOR,
    ("POST", f"{_OF_SCHEDULE}/backfill"): Role.OPERATOR,
    ("GET", f"{_OF_SCHEDULE}/backfills"): Role.VIEWER,
    ("GET", f"{_OF_SCHEDULE}/fires"): Role.VIEWER,
    ("GET", f"{_OF_SCHEDULE}/executions"): Role.VIEWER,
    ("GET", f"{_OF_SCHEDULE}/stats"): Role.VIEWER,
    ("GET", f"{_OF_SCHEDULE}/versions"): Role.VIEWER,
    ("GET", f"{_OF_SCHEDULE}/versions/{{version}}"): Role.VIEWER,
    ("POST", f"{_OF_SCHEDULE}/versions/{{version}}/restore"): Role.EDITOR,
    ("GET", f"{_V1}/backfills/{{backfill_id}}"): Role.VIEWER,
    ("POST", f"{_V1}/backfills/{{backfill_id}}/cancel"): Role.OPERATOR,
    # executions
    ("GET", f"{_V1}/executions"): Role.VIEWER,
    ("POST", f"{_V1}/executions/bulk"): Role.OPERATOR,
    ("GET", _OF_EXECUTION): Role.VIEWER,
    ("POST", f"{_OF_EXECUTION}/retry"): Role.OPERATOR,
    ("POST", f"{_OF_EXECUTION}/cancel"): Role.OPERATOR,
    ("GET", f"{_OF_EXECUTION}/attempts"): Role.VIEWER,
    ("GET", f"{_OF_EXECUTION}/logs"): Role.VIEWER,
    ("POST", f"{_OF_EXECUTION}/progress"): Open.AGENT,
    ("POST", f"{_OF_EXECUTION}/complete"): Open.AGENT,
    # the rest
    ("GET", f"{_V1}/kinds"): Role.VIEWER,
    ("GET", f"{_V1}/task-functions"): Role.VIEWER,
    ("GET", f"{_V1}/task-functions/{{name}}"): Role.VIEWER,
    ("PATCH", f"{_V1}/task-functions/{{name}}"): Open.KEY_HOLDER,
    ("GET", f"{_V1}/instances"): Role.VIEWER,
    ("POST", f"{_V1}/instances/{{instance_id}}/drain"): Home(Role.OPERATOR),
    ("POST", f"{_V1}/instances/{{instance_id}}/resume"): Home(Role.OPERATOR),
    ("GET", f"{_V1}/cluster"): Role.VIEWER,
    ("POST", f"{_V1}/cluster/reshard"): Home(Role.ADMIN),
    ("GET", f"{_V1}/queues"): Role.VIEWER,
    ("POST", f"{_V1}/queues/{{name}}/pause"): Role.OPERATOR,
    ("POST", f"{_V1}/queues/{{name}}/resume"): Role.OPERATOR,
    ("GET", f"{_V1}/calendars"): Role.VIEWER,
    ("POST", f"{_V1}/calendars"): Role.EDITOR,
    ("POST", f"{_V1}/calendars/import"): Role.EDITOR,
    ("GET", f"{_V1}/calendars/{{name}}"): Role.VIEWER,
    ("PUT", f"{_V1}/calendars/{{name}}"): Role.EDITOR,
    ("DELETE", f"{_V1}/calendars/{{name}}"): Role.EDITOR,
    ("GET", f"{_V1}/secrets"): Role.ADMIN,
    ("POST", f"{_V1}/secrets"): Role.ADMIN,
    ("POST", f"{_V1}/secrets/rotate"): Open.KEY_HOLDER,
    ("DELETE", f"{_V1}/secrets/{{name}}"): Role.ADMIN,
    ("GET", f"{_V1}/notifications"): Role.VIEWER,
    ("GET", f"{_V1}/notifications/{{notification_id}}"): Role.VIEWER,
    ("POST", f"{_V1}/notifications/{{notification_id}}/retry"): Role.OPERATOR,
    ("GET", f"{_V1}/notifications/rules"): Role.VIEWER,
    ("POST", f"{_V1}/notifications/rules"): Role.EDITOR,
    ("GET", _OF_RULE): Role.VIEWER,
    ("PUT", _OF_RULE): Role.EDITOR,
    ("PATCH", _OF_RULE): Role.EDITOR,
    ("DELETE", _OF_RULE): Role.EDITOR,
    ("POST", f"{_OF_RULE}/test"): Role.EDITOR,
    ("GET", f"{_V1}/keys"): Role.ADMIN,
    ("POST", f"{_V1}/keys"): Role.ADMIN,
    ("DELETE", f"{_V1}/keys/{{key_id}}"): Role.ADMIN,
    ("POST", f"{_V1}/sign-in-links"): Open.KEY_HOLDER,
    ("GET", f"{_V1}/hosts"): Open.KEY_HOLDER,
    ("POST", f"{_V1}/hosts"): Open.KEY_HOLDER,
    ("GET", f"{_V1}/audit"): Role.ADMIN,
    ("GET", f"{_V1}/me"): Open.SIGNED_IN,
    ("GET", f"{_V1}/events"): Role.VIEWER,
    ("GET", f"{_V1}/events/groups"): Home(Role.VIEWER),
    ("DELETE", f"{_V1}/events/groups"): Home(Role.ADMIN),
    ("GET", f"{_V1}/events/relays"): Home(Role.VIEWER),
    ("DELETE", f"{_V1}/events/relays"): Home(Role.ADMIN),
    ("GET", f"{_V1}/events/dead-letters"): Home(Role.VIEWER),
    ("POST", f"{_V1}/events/dead-letters/{{dead_letter_id}}/replay"): Home(Role.OPERATOR),
    ("DELETE", f"{_V1}/events/dead-letters/{{dead_letter_id}}"): Home(Role.ADMIN),
    ("GET", f"{_V1}/status"): Role.VIEWER,
    ("GET", f"{_V1}/timeline"): Role.VIEWER,
    ("GET", f"{_V1}/load"): Role.VIEWER,
    ("GET", f"{_V1}/stream"): Role.VIEWER,
}


def methods_at(path: str) -> list[str]:
    """Return the HTTP methods that a path supports."""
    return sorted({method for method, template in ACCESS if _pattern(template).fullmatch(path)})


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template)))
