"""The check of names and docstrings finds what it is for, and can be silenced with a reason."""

from pathlib import Path

import pytest
from scripts.check_names import findings_in

ONE, OTHER = Path("src/foliot/one.py"), Path("src/foliot/other.py")


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        ("MOST_ROWS = 3\n", "src/foliot/one.py:1: MOST_ROWS: call bounds MAX_ and MIN_"),
        ("_LEAST = 3\n", "src/foliot/one.py:1: _LEAST: call bounds MAX_ and MIN_"),
        ('"""The same for others."""\n', "src/foliot/one.py:1: a docstring begins"),
        ('class A:\n    x: int\n    """The same."""\n', "src/foliot/one.py:3: a docstring begins"),
    ],
)
def test_what_breaks_a_rule_is_found(source: str, finding: str) -> None:
    [found] = findings_in({ONE: source})
    assert found.startswith(finding)


def test_a_class_name_with_two_meanings_is_found() -> None:
    sources = {ONE: "class Claim: ...\nclass _Own: ...\n", OTHER: "class Claim: ...\nclass _Own: ...\n"}
    assert list(findings_in(sources)) == [
        "src/foliot/other.py:1: class Claim is also defined at src/foliot/one.py:1"
    ]
    in_tests = {Path("tests/one.py"): sources[ONE], Path("tests/other.py"): sources[OTHER]}
    assert list(findings_in(in_tests)) == []


@pytest.mark.parametrize("source", ["AT_MOST_ONCE = 1\n", "MAX_ROWS = 3\n", 'x = "The same"\n'])
def test_what_only_resembles_it_is_not(source: str) -> None:
    assert list(findings_in({ONE: source})) == []


def test_a_line_is_let_through_with_a_reason_only() -> None:
    assert list(findings_in({ONE: "MOST = 3  # names: a word of the protocol\n"})) == []
    assert list(findings_in({ONE: "MOST = 3  # names:\n"})) != []


@pytest.mark.parametrize(
    "source", ["if dialect.name == x: ...\n", "y = self.database.dialect.name\n", 'x = kind == "sqlite"\n']
)
def test_only_the_folder_db_knows_which_database_it_is(source: str) -> None:
    [found] = findings_in({ONE: source})
    assert found.startswith("src/foliot/one.py:1: only db/ may know which database it is")
    assert list(findings_in({Path("src/foliot/db/one.py"): source, Path("tests/one.py"): source})) == []


def test_a_file_that_is_named_and_does_not_exist_is_found() -> None:
    sources = {ONE: '"""See `other.py`, and `db/gone.py`."""\n', OTHER: ""}
    assert list(findings_in(sources)) == [
        "src/foliot/one.py:1: gone.py is named here, and there is no such file"
    ]


def test_a_long_module_is_found() -> None:
    long = Path("src/foliot/long.py")
    assert list(findings_in({long: "\n" * 500})) == []
    assert list(findings_in({long: "\n" * 501})) == ["src/foliot/long.py: 501 lines, at most 500"]


def test_a_crowded_folder_is_found() -> None:
    def sources(count: int) -> dict[Path, str]:
        return {Path(f"src/foliot/store/module_{number}.py"): "" for number in range(count)}

    assert list(findings_in(sources(25) | {Path("src/foliot/store/__init__.py"): ""})) == []
    assert list(findings_in(sources(26))) == ["src/foliot/store: 26 modules in one folder, at most 25"]
