"""Encryption of stored secrets under one or more keys."""

import pytest
from cryptography.fernet import Fernet

from foliot.access.cipher import Cipher, UndecipherableError

OLD = "an old key of thirty-two characters or more"
NEW = "a new key of thirty-two characters or more"


def test_what_was_encrypted_can_be_read_again_and_is_not_in_the_clear() -> None:
    cipher = Cipher.from_keys(OLD)
    token = cipher.encrypt("geheim ✓")
    assert cipher.decrypt(token) == "geheim ✓"
    assert "geheim" not in token
    assert cipher.encrypt("geheim ✓") != token


def test_the_same_text_is_the_same_key_everywhere() -> None:
    assert Cipher.from_keys(f" {OLD} ").decrypt(Cipher.from_keys(OLD).encrypt("value")) == "value"


def test_a_fernet_key_is_used_as_it_is() -> None:
    key = Fernet.generate_key().decode()
    token = Cipher.from_keys(key).encrypt("value")
    assert Fernet(key).decrypt(token) == b"value"


def test_the_first_key_encrypts_and_every_key_decrypts() -> None:
    old = Cipher.from_keys(OLD)
    both = Cipher.from_keys(f"{NEW},{OLD}")
    before = old.encrypt("value")
    assert both.decrypt(before) == "value"
    assert not both.is_current(before)
    after = both.rotate(before)
    assert both.is_current(after)
    assert Cipher.from_keys(NEW).decrypt(after) == "value"
    with pytest.raises(UndecipherableError):
        old.decrypt(after)


@pytest.mark.parametrize("keys", ["", "short", "x" * 31, f"{OLD},", f"{OLD},short", ","])
def test_a_short_key_is_refused_and_not_shown(keys: str) -> None:
    with pytest.raises(ValueError, match="at least 32") as caught:
        Cipher.from_keys(keys)
    assert "short" not in str(caught.value)


@pytest.mark.parametrize("key", ["x" * 32, "x" * 43, "ü" * 32, "A" * 64, "=" * 44])
def test_any_long_text_is_a_key(key: str) -> None:
    cipher = Cipher.from_keys(key)
    assert cipher.decrypt(cipher.encrypt("value")) == "value"


@pytest.mark.parametrize("token", ["", "nothing", "ü"])
def test_what_is_no_token_can_not_be_read(token: str) -> None:
    with pytest.raises(UndecipherableError):
        Cipher.from_keys(OLD).decrypt(token)
