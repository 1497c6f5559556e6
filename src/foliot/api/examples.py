"""Examples for the OpenAPI document."""

from typing import Any

NIGHTLY_REPORT: dict[str, Any] = {
    "name": "nightly-report",
    "trigger": {"kind": "cron", "expression": "0 2 * * *", "timezone": "Europe/Berlin"},
    "target": {
        "kind": "http",
        "method": "POST",
        "url": "https://agent.example/run",
        "headers": {"Authorization": "Bearer ${secret:agent_token}"},
        "body": {"report": "daily"},
    },
    "labels": {"team": "pay"},
}

ON_CALL_RULE: dict[str, Any] = {
    "name": "on-call",
    "match": {"labels": {"team": "pay"}},
    "on": [{"kind": "failure"}, {"kind": "recovery"}],
    "to": {
        "kind": "webhook",
        "url": "https://hooks.example/foliot",
        "secret": "${secret:webhook_key}",
    },
}
