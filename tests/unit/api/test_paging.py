"""Tokens of lists."""

import base64
from datetime import UTC, datetime

import orjson
import pytest

from foliot.api.paging import PageRequest, Seal, next_token, read_id, read_instant
from foliot.model.errors import InvalidError
from foliot.model.ids import new_id

INSTANT = datetime(2026, 3, 1, 2, 3, 4, 567890, tzinfo=UTC)


def test_a_token_says_back_what_it_was_made_of() -> None:
    identity = new_id()
    position = PageRequest(page_token=next_token([INSTANT, identity])).position()
    assert position is not None
    assert (read_instant(position[0]), read_id(position[1])) == (INSTANT, identity)


def test_a_sealed_token_can_be_read_and_made_only_by_who_has_the_key() -> None:
    seal, other = Seal(b"one"), Seal(b"another")
    token = next_token(["secret"], seal)
    assert "secret" not in str(base64.urlsafe_b64decode(token + "=="))
    assert PageRequest(page_token=token).position(seal) == ["secret"]
    for reader, given in ((other, token), (seal, next_token(["secret"])), (seal, token[:-4] + "AAAA")):
        with pytest.raises(InvalidError, match="page_token"):
            PageRequest(page_token=given).position(reader)


def test_the_first_page_has_no_position() -> None:
    assert PageRequest().position() is None
    assert PageRequest().after_id() is None
    assert PageRequest().after_text() == ""


@pytest.mark.parametrize(
    "token", ["x", "!!!", "ü", "e30", "bnVsbA", "W10", "WzFd", "WyJhIiwiYiJd", "WyJcdTAwMDAiXQ"]
)
def test_a_token_that_no_list_gave_is_refused(token: str) -> None:
    page = PageRequest(page_token=token)
    with pytest.raises(InvalidError, match="page_token"):
        page.after_id()


@pytest.mark.parametrize("value", [None, 3, "yesterday", "2026-03-01T00:00:00"])
def test_what_is_no_instant_is_refused(value: object) -> None:
    with pytest.raises(InvalidError, match="page_token"):
        read_instant(value)


def test_a_page_has_a_token_only_if_there_is_more() -> None:
    page = PageRequest(page_size=2)
    full = orjson.loads(page.answer([1, 2], str, lambda row: [row]).body)
    assert full == {"items": ["1", "2"], "next_page_token": ""}
    more = orjson.loads(page.answer([1, 2, 3], str, lambda row: [row]).body)
    assert more["items"] == ["1", "2"]
    assert PageRequest(page_token=more["next_page_token"]).position() == [2]
