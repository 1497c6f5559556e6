"""How the template finds the functions that the worker has registered."""

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from foliot.kinds.function_target import describe_task
from foliot.worker.isolation import loading
from foliot.worker.isolation.loading import OnlyLoading, load, refuse_in_template
from foliot.worker.isolation.origin import Origin, origin_of


def _twice(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def both() -> Any:
        return function(), function()

    return both


def plain() -> str:
    return "plain"


@_twice
def decorated() -> str:
    return "decorated"


registered = plain


class Shop:
    @staticmethod
    def close() -> str:
        return "closed"


@pytest.fixture(autouse=True)
def _as_if_in_a_template(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(loading, "_is_template", False)
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]


def found(origin: Origin) -> Any:
    tasks, refused = load([origin])
    assert refused == {}
    return tasks[origin.name].function


@pytest.mark.parametrize("function", [plain, decorated, Shop.close])
def test_a_function_is_found_by_its_name(function: Callable[..., Any]) -> None:
    assert found(origin_of(describe_task(function))) is function


def test_a_function_is_found_under_what_decorators_have_put_in_its_place() -> None:
    inner = decorated.__wrapped__  # type: ignore[attr-defined] # functools.wraps adds it
    assert found(origin_of(describe_task(inner))) is inner


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"qualname": "gone"}, "has no gone"),
        ({"first_line": 1}, "is not the function that was registered"),
        ({"module": "no_such", "file": "/no/such.py"}, "no_such can't be imported: FileNotFoundError"),
        ({"module": "no_such", "file": None}, "no_such has no file"),
    ],
)
def test_what_is_not_found_is_refused_with_the_reason(changes: dict[str, Any], told: str) -> None:
    origin = replace(origin_of(describe_task(plain)), **changes)
    tasks, refused = load([origin])
    assert tasks == {}
    assert told in refused["plain"]


def test_a_module_that_fails_is_tried_once_and_others_are_served(tmp_path: Path) -> None:
    file, log = tmp_path / "bad_jobs.py", tmp_path / "log"
    file.write_text(f"with open({str(log)!r}, 'a') as log:\n    log.write('tried ')\n1 / 0\n")
    bad = Origin("bad", "bad_jobs", str(file), False, "work", "work", 1)
    tasks, refused = load([bad, replace(bad, name="worse"), origin_of(describe_task(plain))])
    assert list(tasks) == ["plain"]
    assert (
        refused["bad"]
        == refused["worse"]
        == "bad_jobs can't be imported: ZeroDivisionError: division by zero"
    )
    assert log.read_text() == "tried "
    assert "bad_jobs" not in sys.modules


def test_a_name_that_leads_to_another_file_is_not_followed(tmp_path: Path) -> None:
    file = tmp_path / "json.py"
    file.write_text("def work(): return 'mine'\n")
    assert found(Origin("work", "json", str(file), False, "work", "work", 1))() == "mine"
    assert not hasattr(sys.modules["json"], "work")


@pytest.mark.parametrize("end", ["refuse_in_template()", "raise SystemExit(0)", "pass"])
def test_a_script_that_goes_on_to_run_is_cut_off_where_that_begins(end: str, tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    text = f"""\
        def work(): return __name__
        from foliot.worker.isolation.loading import refuse_in_template
        if __name__ == "__main__":
            raise RuntimeError("run again")
        {end}
    """
    file.write_text(dedent(text))
    assert found(Origin("work", "__main__", str(file), True, "work", "work", 1))() == loading.SCRIPT_NAME


def test_only_a_template_refuses_to_run_anything() -> None:
    refuse_in_template()
    load([])
    with pytest.raises(OnlyLoading):
        refuse_in_template()
