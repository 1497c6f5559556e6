"""Every span of an execution has an id that anybody can work out, in a trace that anybody can name."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from foliot.model.ids import ids_at, new_id
from foliot.model.trace import (
    TraceContext,
    cancel_span,
    create_span,
    execute_span,
    fire_span,
    parse_traceparent,
    sampled_by_caller,
    settle_span,
    trace_id_of,
    trace_id_text,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"
UNSAMPLED = f"00-{TRACE}-{SPAN}-00"
EXECUTION = UUID("01a1e566-22b8-7d2f-893a-ff7e226f9c9e")


def test_ids_are_the_same_wherever_and_whenever_they_are_worked_out() -> None:
    # Written down: processes of different versions work on one trace.
    assert str(fire_span(EXECUTION)) == "00-01a1e56622b87d2f65e7e0db52d7c612-62ba122f65d1bca0-01"
    assert str(execute_span(EXECUTION, 1)) == "00-01a1e56622b87d2f65e7e0db52d7c612-5efd87bcca00e4f4-01"


def test_all_spans_of_an_execution_are_of_one_trace_and_each_has_an_id_of_its_own() -> None:
    spans = [fire_span(EXECUTION)]
    spans += [
        make(EXECUTION, attempt)
        for make in (execute_span, settle_span, cancel_span)
        for attempt in range(1, 50)
    ]
    assert {span.trace_id for span in spans} == {trace_id_of(EXECUTION)}
    assert len({span.span_id for span in spans}) == len(spans)
    others = {fire_span(new_id()).trace_id for _ in range(100)}
    assert len(others) == 100


def test_versions_of_a_schedule_are_one_trace_for_any_number_of_them() -> None:
    versions = [create_span(EXECUTION, version) for version in (1, 2, 3, 2**62)]
    assert len({span.trace_id for span in versions}) == 1
    assert len({span.span_id for span in versions}) == 4


def test_a_trace_is_recognised_by_the_id_of_its_execution() -> None:
    assert trace_id_text(EXECUTION)[:16] == EXECUTION.hex[:16]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_sampler_keeps_its_share_of_the_executions_of_one_batch(share: float) -> None:
    """As the ratio sampler of OpenTelemetry does it: by the lower half of the id."""
    next_id = ids_at(datetime(2026, 3, 29, tzinfo=UTC))
    bound = round(share * 2**64)
    kept = sum(1 for _ in range(2000) if trace_id_of(next_id()) % 2**64 < bound)
    assert kept == pytest.approx(2000 * share, abs=200)


def test_an_execution_that_was_asked_for_within_a_trace_goes_on_with_it() -> None:
    for make in (fire_span, lambda each, told: execute_span(each, 3, told)):
        assert make(EXECUTION, TRACEPARENT).trace_id == int(TRACE, 16)
        assert make(EXECUTION, TRACEPARENT).span_id == make(EXECUTION, None).span_id
    assert trace_id_text(EXECUTION, TRACEPARENT) == TRACE
    assert trace_id_text(EXECUTION, "nonsense") == trace_id_text(EXECUTION)


def test_who_makes_no_spans_passes_on_what_the_caller_decided() -> None:
    assert [sampled_by_caller(1, each) for each in (None, TRACEPARENT, UNSAMPLED, "nonsense")] == [
        True,
        True,
        False,
        True,
    ]
    assert str(execute_span(EXECUTION, 1, UNSAMPLED)).endswith("-00")


@pytest.mark.parametrize(
    ("text", "is_sampled"),
    [
        (TRACEPARENT, True),
        (UNSAMPLED, False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"00-{TRACE}-{SPAN}-02", False),
        (f"cc-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what-will-be", True),
    ],
)
def test_a_traceparent_is_read_also_from_versions_to_come(text: str, is_sampled: bool) -> None:
    assert parse_traceparent(text) == TraceContext(int(TRACE, 16), int(SPAN, 16), is_sampled)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "00",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f" {TRACEPARENT}",
        f"{TRACEPARENT}\n",
        f"cc-{TRACE}-{SPAN}-01more",
        "٠٠" + TRACEPARENT[2:],
    ],
)
def test_whatever_else_is_no_traceparent(text: str | None) -> None:
    assert parse_traceparent(text) is None


@given(some.integers(1, 2**128 - 1), some.integers(1, 2**64 - 1), some.booleans())
def test_what_is_written_is_read_back(trace_id: int, span_id: int, is_sampled: bool) -> None:
    context = TraceContext(trace_id, span_id, is_sampled)
    assert parse_traceparent(str(context)) == context
