"""Bodies of webhook and Slack messages, and webhook signatures.

Webhooks are signed according to Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, in base64. The
key follows `whsec_` in the secret. A retry keeps the id and has a new timestamp.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic_core import to_json

from foliot.model.notification import NotificationType

PREFIX = "whsec_"
MIN_KEY_BYTES = 16
SLACK_ERROR_LENGTH = 400
SLACK_NAMES = 10
SLACK_NAMES_LENGTH = 2500
"""Slack refuses a message that has a section of more than 3,000 characters, counted after escaping."""

_HEADLINES = {
    NotificationType.FAILED: ":red_circle: *{schedule}* failed",
    NotificationType.FAILING: ":rotating_light: *{schedule}* has failed {failures_in_a_row} times in a row",
    NotificationType.RECOVERED: ":large_green_circle: *{schedule}* has recovered",
    NotificationType.DID_NOT_RUN: ":warning: *{schedule}* has had no success since {since_ts}",
    NotificationType.SLA_MISSED: ":hourglass: *{schedule}* has not started in time",
    NotificationType.GATHERED: ":rotating_light: *{count} more schedules* {of}",
    NotificationType.TEST: ":wave: a test of the notification rule *{rule}*",
}

_GATHERED = {
    NotificationType.FAILED.value: "failed",
    NotificationType.FAILING.value: "fail again and again",
    NotificationType.RECOVERED.value: "have recovered",
    NotificationType.DID_NOT_RUN.value: "have had no success for too long",
    NotificationType.SLA_MISSED.value: "have not started in time",
}


class BadSigningKeyError(ValueError):
    """The signing secret is malformed. The message does not contain its value."""

    def __init__(self) -> None:
        super().__init__(f"the signing secret must be {PREFIX} and at least {MIN_KEY_BYTES} bytes in base64")


def signing_key(secret: str) -> bytes:
    """Return the bytes of a `whsec_…` secret. Raises BadSigningKeyError."""
    if not secret.startswith(PREFIX):
        raise BadSigningKeyError
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise BadSigningKeyError from None
    if len(key) < MIN_KEY_BYTES:
        raise BadSigningKeyError
    return key


def webhook_headers(message_id: str, body: bytes, key: bytes, now: datetime) -> dict[str, str]:
    timestamp = str(int(now.timestamp()))
    signed = f"{message_id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }


def webhook_body(message: Mapping[str, Any]) -> bytes:
    return to_json(message)


def slack_body(kind: NotificationType, message: Mapping[str, Any]) -> bytes:
    """Return a Slack message, as plain text and as blocks. Values can't create mentions or links."""
    data = message.get("data", {})
    words = {
        "schedule": data.get("schedule", {}).get("name", ""),
        "rule": data.get("rule", {}).get("name", ""),
        "since_ts": data.get("since_ts", ""),
        "failures_in_a_row": data.get("failures_in_a_row", ""),
        "count": data.get("count", ""),
        "of": _GATHERED.get(data.get("of"), ""),
    }
    headline = _HEADLINES[kind].format(**{name: escaped(str(word)) for name, word in words.items()})
    error = data.get("execution", {}).get("error")
    blocks = [_section(headline)]
    if names := [str(each.get("name", "")) for each in data.get("schedules", ())]:
        said = [escaped(name) for name in names[:SLACK_NAMES]]
        while len(", ".join(said)) > SLACK_NAMES_LENGTH:
            said.pop()
        more = data.get("count", 0) - len(said)
        blocks.append(_section(", ".join(said) + (f" and {more} others" if more > 0 else "")))
    if error and kind is not NotificationType.RECOVERED:
        quoted = str(error)[:SLACK_ERROR_LENGTH].replace("```", "'''")
        blocks.append(_section(f"```{escaped(quoted)}```"))
    if url := data.get("url"):
        blocks.append(_section(f"<{escaped(str(url))}|Open in Foliot>"))
    return to_json({"text": headline, "blocks": blocks})


def escaped(text: str) -> str:
    """Escape the three characters that are special in Slack's markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _section(text: str) -> dict[str, Any]:
    # Without `verbatim`, Slack turns text that looks like a link or mention into one.
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}
