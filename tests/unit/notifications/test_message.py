"""Messages as webhooks and Slack take them."""

import json
from datetime import UTC, datetime

import pytest

from foliot.model.notification import NotificationType
from foliot.notifications.message import BadSigningKeyError, signing_key, slack_body, webhook_headers


def test_a_signature_is_that_of_the_standard() -> None:
    """The example that the standard's own libraries are tested with."""
    key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    now = datetime.fromtimestamp(1614265330, UTC)
    headers = webhook_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', key, now)
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_not base64!", "MfKQ9r8GKYqrTwjUPD8I"]
)
def test_a_secret_that_can_not_sign_is_refused_and_not_told(secret: str) -> None:
    with pytest.raises(BadSigningKeyError) as told:
        signing_key(secret)
    assert not secret or secret not in str(told.value).replace("whsec_ and", "")


@pytest.mark.parametrize("kind", NotificationType)
def test_slack_gets_text_in_which_nothing_of_ours_is_markup(kind: NotificationType) -> None:
    evil = "<!channel> <http://evil.example|click> & ``` @here"
    data = {
        "rule": {"name": evil},
        "schedule": {"name": evil},
        "schedules": [{"name": evil}] * 3,
        "count": 5,
        "of": "schedule.failed",
        "execution": {"error": f"{evil} {'x' * 5000}"},
        "since_ts": "2026-03-01T12:00:00Z",
        "failures_in_a_row": 3,
        "url": "https://foliot.example/executions/1",
    }
    document = json.loads(slack_body(kind, {"type": kind.value, "data": data}))
    texts = [document["text"], *(block["text"]["text"] for block in document["blocks"])]
    link = "<https://foliot.example/executions/1|Open in Foliot>"
    assert link in texts
    for text in texts:
        assert "<" not in text.replace(link, "")
        # Slack refuses a section of more than 3,000.
        assert len(text) < 3000
    # What merely looks like a link or a mention stays text.
    assert all(block["text"]["verbatim"] for block in document["blocks"])
    # One that is about many names them behind its headline.
    assert "&lt;!channel&gt;" in texts[2 if kind is NotificationType.GATHERED else 0]
    assert "{" not in texts[0]


def test_many_long_names_are_cut_before_slack_refuses_them() -> None:
    data = {"schedules": [{"name": "&" * 126}] * 10, "count": 12, "of": "schedule.failed", "rule": {}}
    kind = NotificationType.GATHERED
    document = json.loads(slack_body(kind, {"type": kind.value, "data": data}))
    names = document["blocks"][1]["text"]["text"]
    assert (len(names) < 3000, names[-12:]) == (True, "and 9 others")
