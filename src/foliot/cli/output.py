"""How results are shown: a table for people, JSON for programs; on stdout, and nothing else goes there."""

import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

PIPE_WIDTH = 10_000
"""Wide enough that a table in a pipe is never folded."""


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("-o", "--output", help="How to show the result.")]


def print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_rows(
    rows: Sequence[Sequence[str]], *, headers: Sequence[str] = (), styles: Sequence[str] = ()
) -> None:
    """A table without lines; `styles` colour the first column, one per row, on a terminal only."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    console = Console(width=width, highlight=False)
    table = Table(*headers, box=None, pad_edge=False, show_header=bool(headers), header_style="bold")
    if not headers:
        for _ in range(max(map(len, rows), default=0)):
            table.add_column(overflow="fold")
    for row, style in zip(rows, styles or [""] * len(rows), strict=True):
        first, *rest = row
        table.add_row(Text(first, style=style), *(Text(cell) for cell in rest))
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())
