"""What carries an execution to somebody else says which trace it belongs to."""

from uuid import UUID

import pytest

from foliot.model.policy import Priority
from foliot.model.trace import fire_span
from foliot.transport import celery, rabbitmq
from foliot.transport.transport_protocol import ExecutionMessage

EXECUTION = UUID("01a1e566-22b8-7d2f-893a-ff7e226f9c9e")
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"


@pytest.mark.parametrize("context", [None, CALLER])
def test_a_ticket_names_the_fire_of_its_execution(context: str | None) -> None:
    message = ExecutionMessage(EXECUTION, "default", Priority.HIGH, context)
    expected = str(fire_span(EXECUTION, context))
    assert message.traceparent == expected
    assert rabbitmq._message(message).headers["traceparent"] == expected
    assert celery._call(message, "default").traceparent == expected
    assert expected.endswith("-01" if context is None else "-00")
