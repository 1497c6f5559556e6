"""What is made of an agent's answer, whatever is in it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from foliot.kinds.http_answer import EXTERNAL_ID_LENGTH, AgentResponse, judge
from foliot.kinds.target_protocol import AcceptedByAgent, AttemptFailedError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("job-7", "job-7"),
        ("job\0-7", "job-7"),
        ("\0", None),
        ("", None),
        ("job \ud800", "job ?"),
        ("\0" + "x" * 300, "x" * EXTERNAL_ID_LENGTH),
        (7, "7"),
        (True, None),
        (["job"], None),
    ],
)
def test_an_id_of_the_agents_is_kept_as_far_as_a_database_can_hold_it(told: Any, kept: str | None) -> None:
    answer = AgentResponse(202, {}, {"id": told}, is_truncated=False, date=None)
    assert judge(answer, None, NOW, can_call_back=True) == AcceptedByAgent(kept)


@pytest.mark.parametrize(
    "asked",
    [
        "Mon, 1 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 1 Jan 2027 00:00:00 +99999999999999999999",
        "Mon, 1 Jan 99999 00:00:00 GMT",
    ],
)
def test_a_time_that_no_calendar_has_asks_for_nothing(asked: str) -> None:
    answer = AgentResponse(503, {"retry-after": asked}, None, is_truncated=False, date=asked)
    with pytest.raises(AttemptFailedError, match="503 Service Unavailable") as caught:
        judge(answer, None, NOW, can_call_back=False)
    assert caught.value.retry_after_s is None
