"""What is kept of a `traceparent` that a request brings: what was understood, written anew, or nothing."""

import pytest
from fastapi import Request

from foliot.api.access.gate import _trace_context_of

GOOD = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = b"00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203331-01"


def kept_of(*values: bytes) -> str | None:
    return _trace_context_of(
        Request({"type": "http", "headers": [(b"traceparent", each) for each in values]})
    )


def test_what_was_understood_is_written_anew() -> None:
    assert kept_of(GOOD) == GOOD.decode()
    assert kept_of(GOOD.replace(b"00-", b"cc-", 1) + b"-" + b"more" * 1000) == GOOD.decode()


@pytest.mark.parametrize(
    "values",
    [
        (),
        (b"",),
        (GOOD.upper(),),
        (GOOD.replace(b"00-", b"ff-", 1),),
        (GOOD + b"-more",),
        (b"\xff" * 8000,),
        (GOOD, OTHER),
        (GOOD, GOOD),
    ],
)
def test_of_whatever_else_nothing_is_kept(values: tuple[bytes, ...]) -> None:
    assert kept_of(*values) is None
