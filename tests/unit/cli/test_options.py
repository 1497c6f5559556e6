"""Options that come in groups."""

import json
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer

from foliot.cli.support.options import Listing, grouped
from foliot.cli.support.output import Format


@dataclass(frozen=True)
class _Pair:
    left: Annotated[int, typer.Option("--left")] = 1
    right: Annotated[list[str] | None, typer.Option("--right")] = None


def _run(*arguments: str) -> list[object]:
    app = typer.Typer()
    seen: list[object] = []

    @app.command()
    @grouped
    def command(*, name: str, pair: _Pair, is_last: Annotated[bool, typer.Option("--last")] = False) -> None:
        """Does nothing."""
        seen.extend([name, pair, is_last])

    typer.main.get_command(app).main(args=list(arguments), standalone_mode=False)
    return seen


def test_a_group_is_given_as_one_value() -> None:
    assert _run("x") == ["x", _Pair(), False]
    assert _run("x", "--left", "3", "--right", "a", "--right", "b", "--last") == [
        "x",
        _Pair(3, ["a", "b"]),
        True,
    ]


def test_help_shows_the_options_in_order_with_the_commands_own_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _run("--help")
    told = capsys.readouterr().out
    assert "Does nothing." in told
    assert told.index("--left") < told.index("--right") < told.index("--last")


def test_a_list_has_a_limit_unless_all_is_asked_for() -> None:
    assert Listing().max_items == 50
    assert Listing(limit=7).max_items == 7
    assert Listing(all=True).max_items is None
    assert json.dumps(Listing().output) == json.dumps(Format.TABLE)
