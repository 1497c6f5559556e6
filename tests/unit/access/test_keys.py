"""Keys, sessions and links: told by their form, kept as hashes, compared in constant time."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.access.keys import ApiKey, OperatorKey, Purpose, hash_of, is_hash_of, session_credential

SECRET = "s" * 43
WELL_FORMED = f"flt_{'0' * 16}_{SECRET}"
OPERATOR_TEXT = "operator: 32 characters or more are needed"
OPERATOR = OperatorKey(OPERATOR_TEXT)


def test_a_new_key_has_the_form_that_is_promised() -> None:
    key = ApiKey.new()
    assert re.fullmatch(r"flt_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", key.text)
    assert ApiKey.parse(key.text) == key


def test_no_two_keys_or_tokens_are_alike() -> None:
    many = [ApiKey.new() for _ in range(200)]
    assert len({key.key_id for key in many}) == len({key.secret for key in many}) == 200
    assert len({purpose.new_token() for purpose in Purpose for _ in range(200)}) == 400


def test_a_secret_with_underscores_is_read_whole() -> None:
    key = ApiKey("0123456789abcdef", "_" * 43)
    assert ApiKey.parse(key.text) == key


@pytest.mark.parametrize(
    "text",
    [
        None,
        b"bytes",
        7,
        "",
        "flt",
        "flt__",
        f"FLT_{'0' * 16}_{SECRET}",
        f"flt_{'0' * 15}_{SECRET}",
        f"flt_{'0' * 17}_{SECRET}",
        f"flt_{'A' * 16}_{SECRET}",
        f"flt_{'٣' * 16}_{SECRET}",
        WELL_FORMED[:-1],
        WELL_FORMED + "s",
        WELL_FORMED + "\n",
        " " + WELL_FORMED,
        WELL_FORMED[:-1] + "=",
        WELL_FORMED[:-1] + "ſ",
        WELL_FORMED[:-1] + "\0",
        WELL_FORMED[:-1] + "\ud800",
        WELL_FORMED * 10_000,
    ],
)
def test_what_is_no_key_is_none(text: object) -> None:
    assert ApiKey.parse(text) is None
    assert not any(purpose.has_token(text) for purpose in Purpose)


@given(st.one_of(st.text(), st.binary(), st.none(), st.from_regex(r"\Aflt_[0-9a-f]{14,18}_[\w=-]{40,46}\Z")))
def test_parsing_takes_anything_and_reads_back_only_what_it_would_write(text: object) -> None:
    key = ApiKey.parse(text)
    assert key is None or key.text == text


def test_a_token_is_good_for_its_own_purpose_only() -> None:
    session, link = Purpose.SESSION.new_token(), Purpose.LINK.new_token()
    assert Purpose.SESSION.has_token(session)
    assert Purpose.LINK.has_token(link)
    assert not Purpose.SESSION.has_token(link)
    assert not Purpose.LINK.has_token(session)
    assert not Purpose.SESSION.has_token(ApiKey.new().text)


def test_a_key_that_is_printed_by_accident_does_not_show_its_secret() -> None:
    key = ApiKey.new()
    assert key.secret not in f"{key} {key!r} {[key]}"
    assert key.key_id in repr(key)


def test_only_the_hash_of_the_very_secret_fits() -> None:
    kept = hash_of(SECRET)
    assert kept == hashlib.sha256(SECRET.encode()).hexdigest()
    assert is_hash_of(kept, SECRET)
    for wrong in (SECRET[:-1], SECRET + "s", SECRET.upper(), "", kept, "ü", "\ud800"):
        assert not is_hash_of(kept, wrong)


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr("hmac.compare_digest", compare)
    is_hash_of(hash_of(SECRET), "x")
    OPERATOR.is_it("y" * 1000)
    # Hashes of equal length: not even the length of a guess shows.
    assert [(len(one), len(other)) for one, other in compared] == [(64, 64), (64, 64)]


def test_a_sessions_name_is_only_the_beginning_of_its_hash() -> None:
    token = Purpose.SESSION.new_token()
    assert session_credential(hash_of(token)) == f"session:{hash_of(token)[:16]}"


@pytest.mark.parametrize("key_id", ["", "0" * 15, "0" * 17, "g" * 16, "0" * 15 + "\0", "A" * 16])
def test_an_id_that_no_key_has_is_told(key_id: str) -> None:
    assert not ApiKey.has_id(key_id)
    assert ApiKey.has_id(ApiKey.new().key_id)


# --- the operator's key --------------------------------------------------------------------------------


def test_the_operators_key_is_recognised_and_no_other() -> None:
    assert OPERATOR.is_it(OPERATOR_TEXT)
    for wrong in ("", OPERATOR_TEXT[:-1], OPERATOR_TEXT + " ", OPERATOR_TEXT.upper(), OPERATOR.fingerprint):
        assert not OPERATOR.is_it(wrong)


def test_the_operators_key_is_not_kept_in_the_clear() -> None:
    assert OPERATOR_TEXT not in repr(vars(OPERATOR))


def test_the_fingerprint_follows_the_key_on_every_machine_and_fits_its_column() -> None:
    assert OPERATOR.fingerprint == "op:e878e2225d6f1d45bfb482244992"
    assert len(OPERATOR.fingerprint) <= 32
    assert OperatorKey(OPERATOR_TEXT + "!").fingerprint != OPERATOR.fingerprint
    # What is stored for guessing must not be the quick hash.
    assert hash_of(OPERATOR_TEXT)[:28] not in OPERATOR.fingerprint


@pytest.mark.parametrize("text", ["", "x" * 31, " " + "x" * 40, "x" * 40 + "\n", "ü" * 40, "x" * 40 + "\0x"])
def test_an_operators_key_that_is_short_or_can_not_be_sent_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"needs at least 32|printable ASCII") as caught:
        OperatorKey(text)
    assert not text or text not in str(caught.value)
