"""Text that others wrote, made safe to show: a name or a log line must not steer the terminal."""

import re
import unicodedata

_SHOWN_AS_IS = frozenset("\n\t")
_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, invisible marks that turn the direction of writing, halves of a pair, line separators."""
_JOINERS = frozenset("\u200c\u200d")
"""Invisible too, but parts of words and of emoji."""


def visible(text: str) -> str:
    """The text with everything that a terminal would obey rather than show spelled out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if _is_harmless(each) else _spelled(each) for each in text)


def one_line(text: str) -> str:
    """The text as a single line, with control characters spelled out."""
    return visible(" ".join(text.split()))


def escaped(written: str) -> str:
    """JSON, or YAML, in which what a terminal would obey rather than show is escaped within its strings."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


_OBEYED = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
"""All of these stand within quotes wherever they are written."""


def _is_harmless(character: str) -> bool:
    return (
        character in _SHOWN_AS_IS or character in _JOINERS or unicodedata.category(character) not in _STEERING
    )


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
