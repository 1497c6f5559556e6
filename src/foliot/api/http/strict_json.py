"""Strict JSON parser for bodies: every document that it accepts can be stored and returned unchanged.

In addition to invalid JSON it refuses text that PostgreSQL can't store (NUL), integers that would silently
become floats (beyond 64 bits), and nesting so deep that recursive code could fail. orjson itself refuses
non-UTF-8, NaN, infinity and unpaired surrogates. If a name occurs twice in an object, the last value counts:
detecting duplicates would need a parser several times as slow.

Measured with a body of 4,000 schedules (728 kB): parsing 10 ms, all checks together 14 ms.
"""

import re
import secrets
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import orjson

from foliot.model.errors import InvalidError, Problem
from foliot.model.schedule import pointer_to

MAX_NESTED = 64
MAX_NAMED_NUMBERS = 20
"""Maximum number of errors for integers of more than 64 bits in one response."""
SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""The range that orjson parses as an integer."""

_NUL = b"\\u0000"
# Preceded by an even number of backslashes. After an odd number, `\\u0000` is an escaped backslash and text.
_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
# The closing quote is optional: otherwise an unterminated string would be tried again at every quote.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_MANY_DIGITS = b"0" * 19
_SEARCHED = (dict, list, str)
_LONG_WHOLE_NUMBER = re.compile(rb"(?<![\d.eE+\-])-?\d{19,}(?![\d.eE])")


def read_json(body: bytes) -> Any:
    """Parse a body. Raises InvalidError."""
    if _NUL in body and _ESCAPED_NUL.search(body):
        raise InvalidError.at("", "nul", "must not contain NUL characters", "leave \\u0000 out")
    huge = _huge_numbers(body)
    if huge:
        raise InvalidError([_too_large(pointer) for pointer in _pointers_to(huge, body)])
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _explained(body, error) from None
    if _is_nested_deeper(document, MAX_NESTED):
        raise _too_deep()
    return document


def _huge_numbers(body: bytes) -> list[re.Match[bytes]]:
    """Return the first MAX_NAMED_NUMBERS integers in the body that have more than 64 bits."""
    # Two fast passes over the bytes: a regular expression for digits takes ten times as long. Only a body
    # that may contain such a number is scanned in detail.
    if _MANY_DIGITS not in body.translate(_DIGITS_AS_ZEROS):
        return []
    # Strings are overwritten, not removed, so that positions stay the same as in the body.
    without_strings = _STRING.sub(lambda string: b'"' * len(string[0]), body)
    huge = (found for found in _LONG_WHOLE_NUMBER.finditer(without_strings) if _is_huge(found[0]))
    return list(islice(huge, MAX_NAMED_NUMBERS))


def _is_huge(digits: bytes) -> bool:
    return len(digits) > 20 or not SMALLEST <= int(digits) <= LARGEST


def _pointers_to(numbers: Sequence[re.Match[bytes]], body: bytes) -> list[str]:
    """Return JSON pointers to the numbers. A pointer to the whole document if they can't be located."""
    # Replace each number by a random text and parse the result. The places of this text are the pointers.
    mark = secrets.token_hex(16)
    pieces, end = [], 0
    for number in numbers:
        pieces += [body[end : number.start()], b'"%s"' % mark.encode()]
        end = number.end()
    try:
        document = orjson.loads(b"".join([*pieces, body[end:]]))
    except orjson.JSONDecodeError:
        return [""]
    # The number may be missing: if a name occurs twice in an object, its first value is lost.
    return list(_pointers_to_text(document, mark)) or [""]


def _pointers_to_text(document: Any, text: str) -> Iterator[str]:
    level: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while level:
        inner: list[tuple[tuple[str | int, ...], Any]] = []
        for path, value in level:
            if value == text:
                yield pointer_to(path)
            elif type(value) is dict:
                inner += [((*path, key), each) for key, each in value.items() if type(each) in _SEARCHED]
            elif type(value) is list:
                inner += [
                    ((*path, index), each) for index, each in enumerate(value) if type(each) in _SEARCHED
                ]
        level = inner


def _too_large(pointer: str) -> Problem:
    hint = "send it as a string, or with a decimal point"
    return Problem(pointer, "number_too_large", "is a whole number of more than 64 bits", hint)


def _is_nested_deeper(document: Any, limit: int) -> bool:
    level = [document] if type(document) in (dict, list) else []
    for _ in range(limit):
        level = [
            inner
            for each in level
            for inner in (each.values() if type(each) is dict else each)
            if type(inner) in (dict, list)
        ]
        if not level:
            return False
    return True


def _explained(body: bytes, error: orjson.JSONDecodeError) -> InvalidError:
    # orjson itself fails beyond 1,024 levels, before the depth is checked here.
    if "depth limit" in error.msg:
        return _too_deep()
    try:
        body.decode()
    except UnicodeDecodeError:
        return InvalidError.at("", "not_utf8", "is not UTF-8", "encode the body as UTF-8")
    where = f"{error.msg} at line {error.lineno}, column {error.colno}"
    return InvalidError.at("", "not_json", f"is not JSON: {where}", "send a JSON document")


def _too_deep() -> InvalidError:
    return InvalidError.at("", "too_deep", f"is nested deeper than {MAX_NESTED} levels", "flatten it")
