"""JSON bodies, read so that whatever gets through can be stored and said back unchanged.

Refused besides what is no JSON: text that PostgreSQL can't hold (NUL), whole numbers that would silently
become floats (beyond 64 bits), and nesting that recursive code further on could break at. Non-UTF-8, NaN,
infinity and halves of a surrogate pair are refused by orjson itself. Of a name that occurs twice in an object
the last value counts: to see more would take a parser several times as slow.

Measured, on a body of 4,000 schedules (728 kB): parsing 10 ms, all checks together 14 ms.
"""

import re
from typing import Any

import orjson

from foliot.model.errors import InvalidError

MOST_NESTED = 64
SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""What orjson keeps as a whole number."""

_NUL = b"\\u0000"
# An even number of backslashes before it: an odd one would make it text that begins with a backslash.
_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
# The closing quote may be missing: a match that failed at the end would be tried anew at every quote.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_MANY_DIGITS = b"0" * 19
_LONG_WHOLE_NUMBER = re.compile(rb"(?<![\d.eE+\-])-?\d{19,}(?![\d.eE])")


def read_json(body: bytes) -> Any:
    """The document of a body. Raises InvalidError."""
    if _NUL in body and _ESCAPED_NUL.search(body):
        raise InvalidError.at("", "nul", "must not contain NUL characters", "leave \\u0000 out")
    if _has_huge_number(body):
        hint = "send it as a string, or with a decimal point"
        raise InvalidError.at("", "number_too_large", "has a whole number of more than 64 bits", hint)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _explained(body, error) from None
    if _is_nested_deeper(document, MOST_NESTED):
        raise _too_deep()
    return document


def _has_huge_number(body: bytes) -> bool:
    # Two passes at the speed of memory, where searching for digits by a regular expression takes ten times
    # as long; only a body that may have such a number is looked at closely.
    if _MANY_DIGITS not in body.translate(_DIGITS_AS_ZEROS):
        return False
    return any(
        len(found) > 20 or not SMALLEST <= int(found) <= LARGEST
        for found in _LONG_WHOLE_NUMBER.findall(_STRING.sub(b'""', body))
    )


def _is_nested_deeper(document: Any, most: int) -> bool:
    level = [document] if type(document) in (dict, list) else []
    for _ in range(most):
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
    # orjson follows 1,024 levels and no more, so what is far too deep never gets to be counted here.
    if "depth limit" in error.msg:
        return _too_deep()
    try:
        body.decode()
    except UnicodeDecodeError:
        return InvalidError.at("", "not_utf8", "is not UTF-8", "encode the body as UTF-8")
    where = f"{error.msg} at line {error.lineno}, column {error.colno}"
    return InvalidError.at("", "not_json", f"is not JSON: {where}", "send a JSON document")


def _too_deep() -> InvalidError:
    return InvalidError.at("", "too_deep", f"is nested deeper than {MOST_NESTED} levels", "flatten it")
