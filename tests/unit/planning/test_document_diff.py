"""What is different between two JSON documents."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.planning.document_diff import Difference, DifferenceKind, diff

NUMBERS = st.integers(-3, 3) | st.floats(-3, 3)
NAMES = st.text("ab/~01", max_size=3)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


def brief(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    return [(each.pointer, each.before, each.after) for each in diff(before, after)]


def applied(document: Any, differences: list[Difference]) -> Any:
    """The document with the differences made, by following their pointers."""
    root = {"": document}
    # From the end of a list, so that what is taken away does not move what is still to be.
    removed = [each for each in differences if each.kind is DifferenceKind.REMOVED]
    for each in [*(each for each in differences if each not in removed), *reversed(removed)]:
        place: Any = root
        *path, last = each.pointer.split("/")
        for step in path:
            place = place[_key(place, step)]
        key = _key(place, last)
        if each.kind is DifferenceKind.REMOVED:
            del place[key]
        elif isinstance(place, list) and key == len(place):
            place.append(each.after)
        else:
            place[key] = each.after
    return root[""]


def _key(place: Any, step: str) -> Any:
    return int(step) if isinstance(place, list) else step.replace("~1", "/").replace("~0", "~")


def copied(document: Any) -> Any:
    if isinstance(document, dict):
        return {name: copied(value) for name, value in document.items()}
    return [copied(value) for value in document] if isinstance(document, list) else document


def typed(document: Any) -> Any:
    """Told apart where Python would not: true is not 1."""
    if isinstance(document, dict):
        return {name: typed(value) for name, value in document.items()}
    if isinstance(document, list):
        return [typed(value) for value in document]
    return (isinstance(document, bool), document)


@given(DOCUMENTS, DOCUMENTS)
def test_the_differences_lead_from_one_document_to_the_other(before: Any, after: Any) -> None:
    assert typed(applied(copied(before), diff(before, after))) == typed(after)


@given(DOCUMENTS)
def test_a_document_does_not_differ_from_itself(document: Any) -> None:
    assert diff(document, copied(document)) == []


def test_only_what_differs_is_told_and_where() -> None:
    before = {"name": "a", "trigger": {"kind": "cron", "expression": "0 2 * * *"}, "labels": {"team": "pay"}}
    after = {"name": "a", "trigger": {"kind": "cron", "expression": "0 3 * * *"}, "labels": {}}
    assert diff(before, after) == [
        Difference("/labels/team", "pay", None, DifferenceKind.REMOVED),
        Difference("/trigger/expression", "0 2 * * *", "0 3 * * *"),
    ]


def test_the_order_of_names_does_not_matter() -> None:
    assert diff({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}) == []


def test_pointers_are_escaped() -> None:
    assert brief({"a/b": {"~1": 1}}, {"a/b": {"~1": 2}}) == [("/a~1b/~01", 1, 2)]


def test_the_whole_document_is_the_empty_pointer() -> None:
    assert brief("old", {"new": 1}) == [("", "old", {"new": 1})]


def test_lists_are_compared_by_position() -> None:
    assert diff({"days": [1, 2, 3]}, {"days": [1, 5]}) == [
        Difference("/days/1", 2, 5),
        Difference("/days/2", 3, None, DifferenceKind.REMOVED),
    ]


def test_a_tuple_is_a_list() -> None:
    assert diff({"days": (1, 2)}, {"days": [1, 2]}) == []


@pytest.mark.parametrize(("before", "after"), [(1, True), (False, 0), (None, 0), ("", None), ("1", 1)])
def test_values_of_different_types_differ(before: Any, after: Any) -> None:
    assert brief({"x": before}, {"x": after}) == [("/x", before, after)]


def test_a_number_is_the_same_however_it_is_written() -> None:
    assert diff({"timeout_seconds": 300}, {"timeout_seconds": 300.0}) == []


def test_a_null_that_is_added_is_told_from_nothing() -> None:
    assert diff({}, {"end_ts": None}) == [Difference("/end_ts", None, None, DifferenceKind.ADDED)]


def test_a_document_deeper_than_the_stack_is_compared() -> None:
    before: Any = 1
    after: Any = 2
    for _ in range(5_000):
        before, after = [before], [after]
    [only] = diff(before, after)
    assert (only.pointer, only.before, only.after) == ("/0" * 5_000, 1, 2)
