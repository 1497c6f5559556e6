"""Lay out a table: columns are as wide as their content, within the width of the terminal."""

from collections.abc import Sequence
from itertools import zip_longest

GAP = 2
MIN_WIDTH = 4
"""Minimum width of a column that is cut."""
CUT = "…"


def columns_of(lines: Sequence[Sequence[str]], room: int | None = None) -> list[int]:
    """Return the width of each column, so that a row fits into `room`. None: no limit.

    The widest columns are cut first. The first column has the name of the item. It is cut only if it is wider
    than half of the room.
    """
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip_longest(*lines, fillvalue="")]
    if room is None or not widths:
        return widths
    left = room - GAP * (len(widths) - 1)
    first = min(widths[0], max(MIN_WIDTH, left // 2))
    rest = widths[1:]
    if first + sum(rest) <= left:
        return [min(widths[0], left - sum(rest)), *rest]
    max_width = max(
        (max_width for max_width in range(MIN_WIDTH, left) if _sum(rest, max_width) <= left - first),
        default=MIN_WIDTH,
    )
    return [first, *(min(width, max_width) for width in rest)]


def _sum(widths: Sequence[int], max_width: int) -> int:
    return sum(min(width, max_width) for width in widths)


def fitted(text: str, width: int) -> str:
    """Pad or cut a text to a column's width."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 1) + CUT
