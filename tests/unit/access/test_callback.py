"""Callback tokens: they hold for one attempt, and can't be made up."""

from uuid import UUID

import pytest

from foliot.access.callback_tokens import CallbackTokens

ONE = UUID(int=1)
TWO = UUID(int=2)
TOKENS = CallbackTokens(b"k" * 32)


def test_a_token_holds_for_its_attempt_and_no_other() -> None:
    token = TOKENS.token(ONE, 1)
    assert TOKENS.is_valid(token, ONE, 1)
    assert not TOKENS.is_valid(token, ONE, 2)
    assert not TOKENS.is_valid(token, ONE, 11)
    assert not TOKENS.is_valid(token, TWO, 1)


def test_a_token_of_another_key_does_not_hold() -> None:
    assert not TOKENS.is_valid(CallbackTokens(b"o" * 32).token(ONE, 1), ONE, 1)


@pytest.mark.parametrize("token", ["", "x", "ü", "\ud800", "a" * 10_000])
def test_anything_else_does_not_hold(token: str) -> None:
    assert not TOKENS.is_valid(token, ONE, 1)


def test_a_token_fits_into_a_header_and_a_url() -> None:
    assert TOKENS.token(ONE, 1).replace("-", "").replace("_", "").isalnum()


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        CallbackTokens(b"short")
