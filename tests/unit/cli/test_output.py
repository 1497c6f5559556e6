"""How results are shown."""

import io
import json
import sys
from datetime import UTC, datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from foliot.cli.support.documents import parse_text, to_yaml
from foliot.cli.support.output import (
    Cell,
    Document,
    Format,
    Row,
    View,
    print_json,
    print_rows,
    show_list,
    show_one,
    state,
)
from foliot.cli.support.table import columns_of, fitted
from foliot.cli.support.text import escaped, one_line, visible

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def _row(item: Document, _now: datetime) -> Row:
    return str(item["name"]), state(item["state"])


THINGS = View("things", ("NAME", "STATE"), _row, lambda item: str(item["name"]))
ITEMS = [{"name": "a", "state": "active"}, {"name": "ß\x1b[31m", "state": "failed"}]


def test_json_is_the_items_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    show_list(ITEMS, Format.JSON, THINGS, NOW)
    assert json.loads(capsys.readouterr().out) == ITEMS
    show_list([], Format.JSON, THINGS, NOW)
    assert capsys.readouterr().out == "[]\n"
    show_one(ITEMS[0], Format.JSON, THINGS, NOW)
    assert json.loads(capsys.readouterr().out) == ITEMS[0]


def test_so_is_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    show_list(ITEMS, Format.YAML, THINGS, NOW)
    assert yaml.safe_load(capsys.readouterr().out) == ITEMS
    show_list([], Format.YAML, THINGS, NOW)
    assert capsys.readouterr().out == "[]\n"


def test_names_are_one_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_list(ITEMS[:1] * 2, Format.NAME, THINGS, NOW)
    assert capsys.readouterr().out == "a\na\n"
    show_list([], Format.NAME, THINGS, NOW)
    assert capsys.readouterr() == ("", "")


def test_a_table_spells_out_what_would_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_list(ITEMS, Format.TABLE, THINGS, NOW)
    assert capsys.readouterr().out == ("NAME       STATE\na          active\nß\\x1b[31m  failed\n")


def test_an_empty_table_says_so_beside_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    show_list([], Format.TABLE, THINGS, NOW)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "no things\n")


def test_details_leave_out_what_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    view = View("things", (), _row, str, lambda item, now: [("name", "x"), ("none", ""), ("lines", "a\nb")])
    show_one({}, Format.TABLE, view, NOW)
    assert capsys.readouterr().out == "name   x\nlines  a\n       b\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, rows: list[Row], headers: list[str]) -> str:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    print_rows(rows, headers=headers)
    return terminal.getvalue()


ROWS: list[Row] = [("nightly-report", Cell("active", "green"), "x" * 50)]


def test_a_terminal_gets_colours_and_lines_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = _on_terminal(monkeypatch, 40, ROWS, ["NAME", "STATE", "MORE"])
    assert "\x1b[32mactive" in shown
    monkeypatch.setenv("NO_COLOR", "1")
    plain = _on_terminal(monkeypatch, 40, ROWS, ["NAME", "STATE", "MORE"])
    assert "\x1b" not in plain
    assert plain == "NAME            STATE   MORE\nnightly-report  active  xxxxxxxxxxxxxxx…\n"


def test_a_pipe_gets_everything(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_rows(ROWS, headers=["NAME", "STATE", "MORE"])
    assert "x" * 50 in capsys.readouterr().out


@given(
    st.lists(st.lists(st.integers(0, 60), min_size=4, max_size=4), min_size=1, max_size=4),
    st.integers(30, 200),
)
def test_columns_fit_into_the_room_and_none_vanishes(sizes: list[list[int]], room: int) -> None:
    lines = [["x" * size for size in row] for row in sizes]
    widths = columns_of(lines, room)
    natural = columns_of(lines)
    assert sum(widths) + 2 * (len(widths) - 1) <= room
    assert all(width == whole or width >= 4 for width, whole in zip(widths, natural, strict=True))
    if sum(natural) + 6 <= room:
        assert widths == natural


@given(st.text(), st.integers(4, 20))
def test_what_is_fitted_has_its_width(text: str, width: int) -> None:
    assert cell_len(fitted(visible(text).replace("\n", " ").replace("\t", " "), width)) == width


@given(st.text())
def test_nothing_that_is_shown_can_steer_a_terminal(text: str) -> None:
    assert not {each for each in visible(text) if ord(each) < 32 or 127 <= ord(each) < 160} - {"\n", "\t"}
    assert "\n" not in one_line(text)


def test_text_in_any_script_stays_as_it_is() -> None:
    text = "Größe 予定 приём 👩‍🚒"
    assert visible(text) == text


def test_a_stdout_of_another_encoding_gets_valid_json(monkeypatch: pytest.MonkeyPatch) -> None:
    bytes_out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(bytes_out, encoding="ascii", write_through=True))
    print_json({"name": "Größe"})
    assert json.loads(bytes_out.getvalue()) == {"name": "Größe"}


@given(st.text())
def test_json_and_yaml_hold_nothing_that_steers_a_terminal_and_lose_nothing(text: str) -> None:
    document = {"text": text, text: 1}
    in_json = escaped(json.dumps(document, ensure_ascii=False))
    in_yaml = escaped(to_yaml(document))
    assert json.loads(in_json) == document
    assert parse_text(in_yaml, "x.yaml") == [document]
    assert not {each for each in in_json + in_yaml if 127 <= ord(each) < 160 or each in "\x1b\u202e\u2066"}


def test_halves_of_characters_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "\ud800"})
    assert json.loads(capsys.readouterr().out) == {"name": "\ud800"}


def test_a_status_is_always_a_word() -> None:
    assert state("success", "3 s ago") == Cell("success 3 s ago", "green")
    assert state("something new") == Cell("something new", "")
    assert state(None) == Cell("", "")
