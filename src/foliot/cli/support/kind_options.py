"""Options of `schedule create` and `set` for the kinds of triggers and targets.

Each kind says which options it has, also kinds of other packages. They are found only when one of these
commands runs: reading them takes as long as the rest of the command line.
"""

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from foliot.cli.support.completion import task_names
from foliot.cli.support.instants import instant_of, interval_of
from foliot.model.errors import InvalidError
from foliot.timing.duration import seconds_of

if TYPE_CHECKING:
    from foliot.model.kind import BaseTarget, BaseTrigger, CliOption

    AnyKind = type[BaseTrigger] | type[BaseTarget]

KINDS = "foliot.kinds"
"""Where a command finds the values of these options, by flag: in the `meta` of its context."""


class KindCommand(TyperCommand):
    """A command that also has the options of all kinds."""

    def get_params(self, ctx: Any) -> list[Any]:
        own = super().get_params(ctx)
        arguments = [each for each in own if each.param_type_name == "argument"]
        return [*arguments, *_parameters(), *(each for each in own if each not in arguments)]

    def invoke(self, ctx: Any) -> Any:
        ctx.meta[KINDS] = {each.opts[0]: ctx.params.pop(each.name) for each in _parameters()}
        return super().invoke(ctx)


@cache
def _parameters() -> Sequence[Any]:
    """Return the options as Typer makes them."""
    from foliot.model.kind import TARGETS, TRIGGERS

    parameters = [
        inspect.Parameter(
            option.flag.removeprefix("--").replace("-", "_"),
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=_annotation(kind, option),
        )
        for kinds in (TRIGGERS, TARGETS)
        for kind in kinds.values()
        for option in kind.cli_options
    ]

    def options(**_given: Any) -> None: ...

    options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    options.__annotations__ = {each.name: each.annotation for each in parameters}
    app = typer.Typer(add_completion=False)
    app.command(add_help_option=False)(options)
    return typer.main.get_command(app).params


def _annotation(kind: "AnyKind", option: "CliOption") -> Any:
    taken: Any = str
    if option.value == "pairs":
        taken = list[str]
    elif len(option.fields) > 1:
        taken = tuple[(str,) * len(option.fields)]  # type: ignore[misc]
    names_task = option.fields == (getattr(kind, "task_field", ""),)
    return Annotated[
        taken | None,
        typer.Option(
            option.flag,
            metavar=option.metavar,
            help=option.help,
            autocompletion=task_names if names_task else None,
        ),
    ]


def flags(kinds: Mapping[str, "AnyKind"]) -> list[str]:
    """Return the options that choose one of the kinds."""
    return [option.flag for kind in kinds.values() for option in kind.cli_options if option.is_choice]


def chosen(
    kinds: Mapping[str, "AnyKind"], given: Mapping[str, Any], known: Mapping[str, Any], what: str
) -> tuple[str | None, str | None]:
    """Return the name of the chosen kind, or of the known one, and the option that chose it.

    Raises InvalidError if several choose, or if an option belongs to another kind.
    """
    choices = [(flag, name) for name, flag, is_choice in _given(kinds, given) if is_choice]
    if len(choices) > 1:
        detail = f"can't be given with {choices[0][0]}: both say {what}"
        raise InvalidError.at(choices[1][0], "option", detail)
    flag, kind = choices[0] if choices else (None, known.get("kind"))
    for name, other, is_choice in _given(kinds, given):
        if not is_choice and name != kind:
            raise InvalidError.at(other, "option", f"is only for {' or '.join(flags({name: kinds[name]}))}")
    return kind, flag


def _given(kinds: Mapping[str, "AnyKind"], given: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    for name, kind in kinds.items():
        for option in kind.cli_options:
            if given.get(option.flag) not in (None, [], ()):
                yield name, option.flag, option.is_choice


def fields_of(
    kind: "AnyKind", given: Mapping[str, Any], known: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """Return a merge patch with the fields of a kind that the options give. Raises InvalidError."""
    found: dict[str, Any] = {}
    for option in kind.cli_options:
        value = given.get(option.flag)
        if value not in (None, [], ()):
            found |= _read(kind, option, value, known, now)
    return found


def _read(
    kind: "AnyKind", option: "CliOption", value: Any, known: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    match option.value:
        case "interval":
            return dict(interval_of(value, option.flag))
        case "instant":
            return {option.fields[0]: instant_of(value, option.flag, now, is_ahead=True)}
        case "duration":
            return {option.fields[0]: seconds_of(value, option.flag)}
        case "pairs":
            pairs = pairs_of(value, option.flag, ":")
            return {option.fields[0]: {name: text.strip() for name, text in pairs.items()}}
        case "json":
            return {option.fields[0]: replacing(known.get(option.fields[0]), value_of(_text_of(value)))}
        case "text":
            texts = (value,) if isinstance(value, str) else value
            return {field: _word(kind, field, text) for field, text in zip(option.fields, texts, strict=True)}


def _word(kind: "AnyKind", field: str, text: str) -> str:
    """Return the text, in the right case if the field allows only certain words."""
    words = [word for word in get_args(kind.model_fields[field].annotation) if isinstance(word, str)]
    return {word.casefold(): word for word in words}.get(text.casefold(), text)


def replacing(old: Any, new: Any) -> Any:
    """Return a merge patch that turns `old` into `new` and removes all other fields."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    gone = {name: None for name in old if name not in new}
    return {**gone, **{name: replacing(old.get(name), value) for name, value in new.items()}}


def pairs_of(texts: Sequence[str], option: str, sign: str) -> dict[str, str]:
    """Parse texts such as `NAME=VALUE`. Raises InvalidError."""
    found = {}
    for text in texts:
        name, is_there, value = text.partition(sign)
        if not is_there or not name.strip():
            raise InvalidError.at(option, "pair", f'"{text}" is not NAME{sign}VALUE')
        found[name.strip()] = value
    return found


def value_of(text: str) -> Any:
    """Parse a text as JSON if possible, else return it."""
    try:
        return json.loads(text, parse_constant=_refuse_number)
    except (ValueError, RecursionError):
        return text


def _refuse_number(name: str) -> Any:
    """Refuse NaN and the infinities, which are no JSON."""
    raise ValueError(name)


def _text_of(given: str) -> str:
    if not given.startswith("@"):
        return given
    from foliot.cli.support.documents import read_text

    return read_text(given[1:])
