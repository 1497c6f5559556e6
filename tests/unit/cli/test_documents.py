"""Schedules in files."""

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.cli.support.documents import (
    FileError,
    parse_text,
    read_document,
    read_schedules,
    to_documents,
    to_yaml,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
WORDS = st.sampled_from(
    [
        "no",
        "on",
        "YES",
        "null",
        "~",
        "",
        "12:30",
        "1e3",
        "0x10",
        "010",
        "2026-01-01",
        "2026-01-01T00:00:00Z",
        "1_000",
    ]
)


@given(st.dictionaries(st.text(min_size=1), JSON | WORDS, min_size=1, max_size=4))
def test_what_is_written_is_read_again_as_it_was(document: dict[str, Any]) -> None:
    assert parse_text(to_yaml(document), "x.yaml") == [document]


@given(
    st.lists(
        st.dictionaries(st.text(min_size=1), JSON | WORDS, min_size=1, max_size=2), min_size=1, max_size=3
    )
)
def test_so_are_several_documents(documents: list[dict[str, Any]]) -> None:
    assert parse_text(to_documents(documents), "x.yaml") == documents


@pytest.mark.parametrize("text", ["no", "off", "12:30", "2026-03-01", "2026-03-01T02:00:00Z", "0x1f", "010"])
def test_yaml_has_no_surprises(text: str) -> None:
    assert parse_text(f"value: {text}", "x.yaml") == [{"value": text}]


def test_numbers_and_truth_are_what_they_look_like() -> None:
    text = "a: 1\nb: -2.5\nc: true\nd: null\ne: 0\nf: 1.0e+3\n"
    assert parse_text(text, "x.yaml") == [{"a": 1, "b": -2.5, "c": True, "d": None, "e": 0, "f": 1000.0}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("one.yaml", "name: a"),
        ("several.yaml", "name: a\n---\nname: b\n---\n"),
        ("list.yml", "- name: a\n- name: b"),
        ("under.yaml", "schedules:\n- name: a\n- name: b"),
        ("one.json", '{"name": "a"}'),
        ("list.json", '[{"name": "a"}, {"name": "b"}]'),
        ("under.json", '{"schedules": [{"name": "a"}]}'),
        ("empty.yaml", "# nothing\n"),
    ],
)
def test_a_file_may_hold_one_schedule_or_several(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    names = [each.document["name"] for each in read_schedules([str(file)])]
    assert names == [letter for letter in "ab" if f"name: {letter}" in text or f'"{letter}"' in text]


def test_a_folder_is_read_with_those_below_it_in_order_and_without_hidden_ones(tmp_path: Path) -> None:
    for place in ("b.yaml", "a/c.yml", "a/d.json", "a/readme.md", ".git/x.yaml", "a/.y.yaml"):
        file = tmp_path / place
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"name": place}))
    assert [each.document["name"] for each in read_schedules([str(tmp_path)])] == [
        "a/c.yml",
        "a/d.json",
        "b.yaml",
    ]


def test_each_schedule_knows_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("name: a\n---\n- name: b\n- name: c\n")
    places = [each.origin.removeprefix(f"{tmp_path}/") for each in read_schedules([str(file)])]
    assert places == ["x.yaml, document 1", "x.yaml, document 2, item 1", "x.yaml, document 2, item 2"]


@pytest.mark.parametrize("text", ['{"name": "a"}', "name: a\n", "\ufeffname: a\n", '[{"name": "a"}]'])
def test_stdin_may_be_yaml_or_json(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    assert [each.document for each in read_schedules(["-"])] == [{"name": "a"}]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x.yaml", "name: [", "line 1"),
        ("x.yaml", "a: 1\nb: 2\na: 3", '"a" is given twice'),
        ("x.json", '{"a": 1, "a": 2}', '"a" is given twice'),
        ("x.json", '{"a": NaN}', "NaN"),
        ("x.json", "name: a", "is not JSON"),
        ("x.yaml", "just text", "neither a schedule nor a list"),
        ("x.yaml", "- just text", "item 1"),
        ("x.yaml", "schedules: []\nother: 1", "beside schedules"),
        ("x.yaml", "a: !!python/object/apply:os.system [id]", "is not YAML"),
        ("x.yaml", "? [a, b]\n: 1", "is not YAML"),
        ("x.yaml", "a: \x00", "is not YAML"),
    ],
)
def test_what_can_not_be_read_names_the_file_and_the_reason(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(FileError) as caught:
        read_schedules([str(file)])
    assert str(caught.value).startswith(f"{tmp_path}/{name}")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there_or_no_text_are_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        read_schedules([str(tmp_path / "none.yaml")])
    with pytest.raises(FileError, match=r"no files that end in \.yaml"):
        read_schedules([str(tmp_path)])
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9")
    with pytest.raises(FileError, match="UTF-8"):
        read_schedules([str(tmp_path / "latin.yaml")])


def test_one_document_is_one(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("a: 1\n---\nb: 2\n")
    with pytest.raises(FileError, match="2 documents"):
        read_document(str(file))


def test_lines_are_written_as_lines() -> None:
    assert to_yaml({"body": "one\ntwo\n"}) == "body: |\n  one\n  two\n"
