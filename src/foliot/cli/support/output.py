"""Show results as a table for people, or as JSON, YAML or names for programs. Only results go to stdout."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import zip_longest
from typing import Annotated, Any, NamedTuple, TextIO

import typer

from foliot.cli.support.table import GAP, columns_of, fitted
from foliot.cli.support.text import escaped, one_line, visible

PIPE_CLOSED = 141
"""Exit code when the reader of stdout is gone: what shells report for a program ended by SIGPIPE."""


class Output(StrEnum):
    """Output formats of commands whose results have no names."""

    TABLE = "table"
    JSON = "json"


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OutputOption = Annotated[Output, typer.Option("-o", "--output", help="How to show the result.")]
FormatOption = Annotated[Format, typer.Option("-o", "--output", help="How to show the result.")]


class Cell(NamedTuple):
    """A text in a table, with a colour on a terminal."""

    text: str
    style: str = ""


Row = Sequence[str | Cell]
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """Describes how one kind of item is shown."""

    kind: str
    """The plural name of the items."""
    headers: Sequence[str]
    row: Callable[[Document, datetime], Row]
    name: Callable[[Document], str]
    details: Callable[[Document, datetime], Sequence[Row]] | None = None
    """Returns pairs of label and text, to show a single item. None: shown as a table row."""


# --- writing ---------------------------------------------------------------------------------------


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is an open terminal."""
    return stream is not None and not stream.closed and stream.isatty()


def write(text: str) -> None:
    """Write lines to stdout. Ends the command without a message if the reader of the pipe is gone."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        typer.echo(text.encode(encoding, "backslashreplace").decode(encoding))
    except BrokenPipeError:
        _leave_pipe()
        raise typer.Exit(PIPE_CLOSED) from None


def say(text: str) -> None:
    """Write a message as one line to stderr."""
    typer.echo(one_line(text), err=True)


def _leave_pipe() -> None:
    # Otherwise Python would flush its buffer at exit, fail again, and print an error.
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def print_json(document: Any) -> None:
    is_utf8 = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
    write(escaped(json.dumps(document, indent=2, ensure_ascii=not is_utf8)))


def print_yaml(document: Any) -> None:
    from foliot.cli.support.documents import to_yaml

    write(escaped(to_yaml(document)).rstrip("\n"))


def print_rows(rows: Sequence[Row], *, headers: Sequence[str] = (), styles: Sequence[str] = ()) -> None:
    """Print a table without borders. `styles`: colours of the first column, one per row.

    On a terminal, the table is coloured, and cut to its width if it has headers.
    """
    is_seen = is_terminal(sys.stdout)
    tidy = one_line if headers else visible
    cells = [[Cell(tidy(_text(cell)), _style(cell)) for cell in row] for row in rows]
    for row, style in zip(cells, styles, strict=False):
        row[0] = row[0]._replace(style=style)
    lines = [[Cell(header, "bold") for header in headers]] if headers else []
    for row in cells:
        parts = [cell.text.split("\n") for cell in row]
        lines += [
            [Cell(text, cell.style) for text, cell in zip(texts, row, strict=True)]
            for texts in zip_longest(*parts, fillvalue="")
        ]
    room = typer.get_terminal_size().columns if is_seen and headers else None
    widths = columns_of([[cell.text for cell in line] for line in lines], room)
    is_coloured = is_seen and not os.environ.get("NO_COLOR")
    shown = [_line(line, widths, is_coloured=is_coloured) for line in lines]
    if shown:
        write("\n".join(shown))


def _line(cells: Sequence[Cell], widths: Sequence[int], *, is_coloured: bool) -> str:
    texts = [fitted(cell.text, width) for cell, width in zip(cells, widths, strict=False)]
    # Trailing blanks could wrap to the next line.
    texts[-1] = texts[-1].rstrip()
    if is_coloured:
        texts = [_painted(text, cell.style) for text, cell in zip(texts, cells, strict=True)]
    return (" " * GAP).join(texts).rstrip()


def _painted(text: str, style: str) -> str:
    return typer.style(text, **_COLOURS[style]) if style else text


_COLOURS: dict[str, dict[str, Any]] = {
    "bold": {"bold": True},
    "dim": {"dim": True},
    **{colour: {"fg": colour} for colour in ("green", "yellow", "red")},
}


# --- items -----------------------------------------------------------------------------------------


def show_list(items: Sequence[Document], format_: Format, view: View, now: datetime) -> None:
    match format_:
        case Format.JSON:
            print_json(items)
        case Format.YAML:
            print_yaml(items)
        case Format.NAME:
            if items:
                write("\n".join(visible(view.name(item)) for item in items))
        case Format.TABLE if items:
            print_rows([view.row(item, now) for item in items], headers=view.headers)
        case Format.TABLE:
            say(f"no {view.kind}")


def show_one(item: Document, format_: Format, view: View, now: datetime) -> None:
    match format_:
        case Format.JSON:
            print_json(item)
        case Format.YAML:
            print_yaml(item)
        case Format.NAME:
            write(visible(view.name(item)))
        case Format.TABLE if view.details is not None:
            print_rows([row for row in view.details(item, now) if _text(row[-1])])
        case Format.TABLE:
            print_rows([view.row(item, now)], headers=view.headers)


def _text(cell: str | Cell) -> str:
    return cell.text if isinstance(cell, Cell) else cell


def _style(cell: str | Cell) -> str:
    return cell.style if isinstance(cell, Cell) else ""


_GOOD, _BAD, _OPEN, _ASIDE = "green", "red", "yellow", "dim"
_STYLE_OF = {
    "active": _GOOD,
    "success": _GOOD,
    "done": _GOOD,
    "fired": _GOOD,
    "live": _GOOD,
    "failed": _BAD,
    "timeout": _BAD,
    "unknown": _BAD,
    "error": _BAD,
    "gone": _BAD,
    "led": _GOOD,
    "unled": _BAD,
    "draining": _OPEN,
    "running": _OPEN,
    "retrying": _OPEN,
    "pending": _OPEN,
    "paused": _OPEN,
    "skipped": _ASIDE,
    "cancelled": _ASIDE,
    "inactive": _ASIDE,
    "completed": _ASIDE,
    "revoked": _ASIDE,
    "expired": _ASIDE,
}


def state(word: Any, more: str = "") -> Cell:
    """Return a cell with a state or status: a word with its colour, and `more` behind it."""
    text = str(word or "")
    return Cell(f"{text} {more}".strip(), _STYLE_OF.get(text, ""))
