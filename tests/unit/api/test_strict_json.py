"""Whatever gets through can be stored and said back unchanged; everything else is a 422 that says why."""

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.api.http.strict_json import MAX_NAMED_NUMBERS, read_json
from foliot.model.errors import InvalidError

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=30,
)


def code_of(body: bytes) -> str:
    with pytest.raises(InvalidError) as caught:
        read_json(body)
    [problem] = caught.value.problems
    assert problem.pointer == ""
    assert problem.hint
    return problem.code


def nested(levels: int, begin: bytes = b"[", end: bytes = b"]") -> bytes:
    return begin * levels + end * levels


@given(DOCUMENTS.filter(lambda document: "Infinity" not in json.dumps(document)))
def test_a_document_is_read_as_it_was_meant(document: Any) -> None:
    assert read_json(json.dumps(document).encode()) == document
    assert read_json(json.dumps(document, ensure_ascii=False).encode()) == document


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"a": 1,}',
        b"{'a': 1}",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1 2",
        b"\xef\xbb\xbf{}",
    ],
)
def test_what_is_no_json_is_called_so(body: bytes) -> None:
    assert code_of(body) == "not_json"


def test_the_place_of_the_mistake_is_told_and_nothing_of_the_body_is() -> None:
    with pytest.raises(InvalidError, match="line 2, column 5") as caught:
        read_json(b'{\n"a" swordfish}')
    assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize("body", [b'"\xff"', b'{"\xc3": 1}', '"ä"'.encode("latin-1"), '"ä"'.encode("utf-16")])
def test_what_is_not_utf8_is_refused(body: bytes) -> None:
    assert code_of(body) == "not_utf8"


@pytest.mark.parametrize("body", [rb'"\ud800"', rb'"a\udc00b"', rb'{"\ud83d": 1}', b'"\xed\xa0\x80"'])
def test_half_a_surrogate_pair_is_refused(body: bytes) -> None:
    assert code_of(body) in ("not_json", "not_utf8")


# --- NUL -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", [rb'"\u0000"', rb'{"a": ["b\u0000"]}', rb'{"a\u0000": 1}', rb'"\\\u0000"', rb'"\n\u0000"']
)
def test_an_escaped_nul_is_refused_wherever_it_stands(body: bytes) -> None:
    assert code_of(body) == "nul"


def test_a_nul_as_it_is_is_refused() -> None:
    assert code_of(b'"a\0b"') == "not_json"


@pytest.mark.parametrize(
    ("body", "meant"), [(rb'"\\u0000"', "\\u0000"), (rb'"\\\\u0000"', "\\\\u0000"), (rb'"u0000"', "u0000")]
)
def test_a_backslash_and_digits_are_no_nul(body: bytes, meant: str) -> None:
    assert read_json(body) == meant


# --- numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**20, -(10**20), 10**400])
def test_a_whole_number_that_would_become_a_float_is_refused(number: int) -> None:
    digits = f"{number:_}".replace("_", "").encode()
    for body, pointer in ((b"%d", ""), (b'{"a": [%d]}', "/a/0"), (b"[1, %d, 2]", "/1")):
        assert too_large_at(body.replace(b"%d", digits)) == [pointer]


def too_large_at(body: bytes) -> list[str]:
    with pytest.raises(InvalidError) as caught:
        read_json(body)
    assert {(each.code, bool(each.hint)) for each in caught.value.problems} == {("number_too_large", True)}
    return [each.pointer for each in caught.value.problems]


HUGE = b"1" * 40


def test_each_number_that_is_too_large_is_named_by_its_pointer() -> None:
    body = b'{"text\\" 1": "%b", "a/b": {"retry": {"max": %b}}, "list": [{"n": -%b}, 1]}' % (HUGE, HUGE, HUGE)
    assert too_large_at(body) == ["/a~1b/retry/max", "/list/0/n"]


def test_only_so_many_numbers_are_named() -> None:
    assert len(too_large_at(b"[" + b",".join([HUGE] * 1_000) + b"]")) == MAX_NAMED_NUMBERS


def test_a_number_that_is_too_large_in_a_body_that_is_no_json_points_at_the_body() -> None:
    assert too_large_at(b'{"a": %b, "b": }' % HUGE) == [""]
    assert too_large_at(b'{"a": %b, "a": 1}' % HUGE) == [""], "the second value hides the first"


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 2**63])
def test_whole_numbers_of_64_bits_are_exact(number: int) -> None:
    assert read_json(str(number).encode()) == number
    assert isinstance(read_json(str(number).encode()), int)


@pytest.mark.parametrize(
    "body",
    [
        b"0.12345678901234567890123",
        b"12345678901234567890123.5",
        b"12345678901234567890123e1",
        b"1e-0000000000000000000000001",
        b'"12345678901234567890123"',
        b'"\\"12345678901234567890123"',
        b'{"12345678901234567890123": 1}',
    ],
)
def test_many_digits_elsewhere_are_fine(body: bytes) -> None:
    assert read_json(body) == json.loads(body)


@pytest.mark.parametrize("body", [b"1e400", b"-1e400"])
def test_a_number_beyond_all_floats_is_refused(body: bytes) -> None:
    assert code_of(body) == "not_json"


# --- depth ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_refused_beyond_its_limit_and_not_before(begin: bytes, end: bytes) -> None:
    inner = b"1" if begin != b"[" else b""
    read_json(begin * 64 + inner + end * 64)
    for levels in (65, 1000, 5000, 200_000):
        assert code_of(begin * levels + inner + end * levels) == "too_deep"


def test_width_is_not_depth_and_brackets_in_text_are_none() -> None:
    assert len(read_json(b"[" + b"[]," * 500 + b"{}]")) == 501
    text = "[{" * 500 + '"'
    assert read_json(json.dumps([text]).encode()) == [text]


def test_nesting_is_found_behind_whatever_comes_first() -> None:
    assert code_of(b'[1, {"a": "x"}, [], ' + nested(64) + b"]") == "too_deep"


@pytest.mark.parametrize(
    "body",
    [
        b'"' + b'\\"' * 500_000,
        b'"' * 2**20,
        b"\\" * 2**20,
        b"[" * 2**20,
        b'"' + b'\\"' * 500_000 + b"1" * 30,
        b"9" * 2**20,
        b"[" + b"1234567890123456789," * 50_000 + b"1]",
        b'"' + b"\\\\" * 500_000 + b'u0000"',
    ],
    ids=[
        "escaped quotes",
        "quotes",
        "backslashes",
        "brackets",
        "digits after",
        "digits",
        "numbers",
        "no nul",
    ],
)
def test_no_body_of_a_megabyte_takes_long(body: bytes) -> None:
    """Hundreds of times what any of these takes, and a hundredth of what one quadratic search would."""
    begun = time.process_time()
    with suppress(InvalidError):
        read_json(body)
    assert time.process_time() - begun < 2
