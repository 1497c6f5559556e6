"""Secrets that were sent with an attempt, as they are stored."""

import pytest

from foliot.access.cipher import UndecipherableError
from foliot.access.sealed_secrets import seal, unseal

VALUES = ["a value", "ünicode\nand lines", ""]


def test_values_come_back_with_their_key() -> None:
    sealed = seal(VALUES)
    assert unseal(sealed.text, sealed.key) == sorted(VALUES)
    assert "a value" not in sealed.text
    assert "." not in sealed.key


def test_each_has_a_key_of_its_own() -> None:
    one, other = seal(VALUES), seal(VALUES)
    assert one.key != other.key
    with pytest.raises(UndecipherableError):
        unseal(one.text, other.key)


@pytest.mark.parametrize("key", ["", "x", "=", "ü" * 43, "A" * 43, "A" * 1000])
def test_what_is_no_key_opens_nothing(key: str) -> None:
    with pytest.raises(UndecipherableError):
        unseal(seal(VALUES).text, key)


@pytest.mark.parametrize("text", ["", "x", "gAAAAA", "ü"])
def test_what_is_torn_opens_with_no_key(text: str) -> None:
    with pytest.raises(UndecipherableError):
        unseal(text, seal(VALUES).key)
