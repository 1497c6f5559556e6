"""Examples in the OpenAPI."""

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
