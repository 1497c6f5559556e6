"""Laying out a table: columns as wide as what is in them, or as a terminal has room for."""

import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

GAP = 2
MIN_WIDTH = 4
"""A column that is cut still shows this much."""
CUT = "…"


def columns_of(lines: Sequence[Sequence[str]], room: int | None = None) -> list[int]:
    """How wide each column is, within the room that there is.

    The widest give way first; the first one, which names what a line is about, only beyond half of the room.
    """
    widths = [max(map(width_of, column)) for column in zip_longest(*lines, fillvalue="")]
    if room is None or not widths:
        return widths
    left = room - GAP * (len(widths) - 1)
    first = min(widths[0], max(MIN_WIDTH, left // 2))
    rest = widths[1:]
    if first + sum(rest) <= left:
        return [min(widths[0], left - sum(rest)), *rest]
    most = max(
        (most for most in range(MIN_WIDTH, left) if _sum(rest, most) <= left - first), default=MIN_WIDTH
    )
    return [first, *(min(width, most) for width in rest)]


def _sum(widths: Sequence[int], most: int) -> int:
    return sum(min(width, most) for width in widths)


def fitted(text: str, width: int) -> str:
    """The text in a column of this width: filled up, or cut."""
    if width_of(text) <= width:
        return text + " " * (width - width_of(text))
    kept = ""
    for character in text:
        if width_of(kept + character) > width - 1:
            break
        kept += character
    return fitted(kept + CUT, width)


def width_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
