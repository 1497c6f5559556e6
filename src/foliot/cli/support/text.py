"""Make untrusted text safe to print: a name or a log line must not control the terminal."""

import re
import unicodedata

_SHOWN_AS_IS = frozenset("\n\t")
_CONTROL = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of control characters, invisible direction marks, lone surrogates and line separators."""
_JOINERS = frozenset("\u200c\u200d")
"""Invisible as well, but parts of words and emoji, so they are shown."""


def visible(text: str) -> str:
    """Escape all characters that a terminal would interpret instead of showing them."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if _is_harmless(each) else _spelled(each) for each in text)


def one_line(text: str) -> str:
    """Return the text as a single line, with control characters escaped."""
    return visible(" ".join(text.split()))


def escaped(written: str) -> str:
    """Escape characters in JSON or YAML that a terminal would interpret instead of showing them."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


_OBEYED = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
"""JSON and YAML contain these only in quoted strings, so escaping them keeps the meaning."""


def _is_harmless(character: str) -> bool:
    return (
        character in _SHOWN_AS_IS or character in _JOINERS or unicodedata.category(character) not in _CONTROL
    )


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
