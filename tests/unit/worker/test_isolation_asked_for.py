"""What a task function may ask for."""

import pytest

from foliot.kinds.function_target import describe_task
from foliot.model.errors import InvalidError


def plain() -> None: ...


async def asynchronous() -> None: ...


@pytest.mark.parametrize("isolation", [None, "process", "thread"])
def test_a_plain_function_may_choose(isolation: str | None) -> None:
    assert describe_task(plain, isolation=isolation).isolation == isolation


def test_an_async_function_has_no_choice() -> None:
    with pytest.raises(InvalidError, match="is async and runs on the event loop"):
        describe_task(asynchronous, isolation="thread")


def test_what_is_no_isolation_is_refused() -> None:
    with pytest.raises(InvalidError, match='"process" or "thread"'):
        describe_task(plain, isolation="container")


def test_a_function_that_no_other_process_can_find_can_not_ask_for_one() -> None:
    def inner() -> None: ...

    with pytest.raises(InvalidError, match="exists only inside a function"):
        describe_task(inner, isolation="process")
    with pytest.raises(InvalidError, match="a lambda has no name"):
        describe_task(lambda: None, name="nameless", isolation="process")
    assert describe_task(inner, isolation="thread").isolation == "thread"
