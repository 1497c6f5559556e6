"""How the failure of a task is written down."""

import pytest

from foliot.kinds.function_target import TaskRegistry
from foliot.kinds.task_failures import error_of, traceback_of
from foliot.model.errors import InvalidError


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (KeyError("b"), "KeyError: 'b'"),
        (IndexError("list index out of range"), "IndexError: list index out of range"),
        (ValueError(), "ValueError"),
        (UnprintableError(), "UnprintableError: <its text can't be made>"),
    ],
)
def test_an_error_is_told_with_its_type(failure: BaseException, told: str) -> None:
    assert error_of(failure) == told


def test_what_foliot_refuses_is_told_in_its_own_words() -> None:
    refused = InvalidError.at("/args/region", "missing", "is missing", "name one")
    assert error_of(refused) == str(refused)


def test_a_failure_that_has_only_frames_of_foliot_keeps_them() -> None:
    try:
        TaskRegistry().get("nobody")
    except Exception as failure:
        # As it is where a worker has called it: without the frame of this test.
        failure.__traceback__ = failure.__traceback__ and failure.__traceback__.tb_next
        told = traceback_of(failure)
    assert 'function_target.py"' in told
    assert told.endswith("(registered: none)\n")
