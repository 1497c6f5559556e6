"""Read and write schedules in YAML or JSON files, one or several per file.

YAML is read without the surprises of version 1.1: `no` is text and not false, `12:30` is text and not 750,
and a timestamp is text. A duplicate key is an error.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import yaml

from foliot.model.errors import InvalidError, Problem

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"


class FileError(InvalidError):
    """A file can't be read, or does not have the expected content."""

    def __init__(self, origin: str, detail: str) -> None:
        super().__init__([Problem("", "file", detail)])
        self.args = (f"{_name(origin)}: {detail}",)


@dataclass(frozen=True, slots=True)
class SourcedDocument:
    """A document and the file it comes from. Empty origin: it was given by options."""

    document: dict[str, Any]
    origin: str = ""


def read_schedules(sources: Sequence[str]) -> list[SourcedDocument]:
    """Read all schedules of files and folders, in order. `-` is stdin. Raises FileError."""
    found: list[SourcedDocument] = []
    for source in sources:
        for origin, text in _texts(source):
            found += _schedules(origin, parse_text(text, origin))
    return found


def read_document(source: str) -> Any:
    """Read a file or stdin that must have exactly one document. Raises FileError."""
    documents = [document for origin, text in _texts(source) for document in parse_text(text, origin)]
    if len(documents) != 1:
        raise FileError(source, f"has {len(documents)} documents where one is wanted")
    return documents[0]


def read_text(source: str) -> str:
    """Read the text of a file or of stdin. Raises FileError."""
    try:
        return _bytes(source).decode("utf-8-sig")
    except OSError as error:
        raise FileError(source, (error.strerror or str(error)).lower()) from None
    except UnicodeDecodeError:
        raise FileError(source, "is not UTF-8") from None


def _bytes(source: str) -> bytes:
    if source != STDIN:
        return Path(source).read_bytes()
    stdin: TextIO | None = sys.stdin
    if stdin is None:
        raise FileError(source, "is closed")
    return stdin.buffer.read()


def parse_text(text: str, origin: str) -> list[Any]:
    """Parse the documents of a text, without empty ones. Raises FileError."""
    if origin.endswith(".json") or (origin == STDIN and text.lstrip()[:1] in ("{", "[")):
        return [_from_json(text, origin)]
    try:
        return [each for each in yaml.load_all(text, _Loader) if each is not None]
    except yaml.YAMLError as error:
        raise FileError(origin, f"is not YAML: {_explained(error)}") from None
    except (ValueError, RecursionError) as error:
        raise FileError(origin, f"is not YAML: {error}") from None


def to_yaml(document: Any) -> str:
    """Return a document or a list as YAML. `parse_text` restores it unchanged."""
    return _dump(document)


def to_documents(documents: Iterable[Any]) -> str:
    """Return several YAML documents in one text."""
    return "---\n".join(_dump(document) for document in documents)


# --- reading ---------------------------------------------------------------------------------------


def _texts(source: str) -> Iterator[tuple[str, str]]:
    folder = Path(source)
    if source == STDIN or not folder.is_dir():
        yield source, read_text(source)
        return
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in SUFFIXES
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )
    if not files:
        raise FileError(source, f"has no files that end in {', '.join(SUFFIXES)}")
    for file in files:
        yield str(file), read_text(str(file))


def _schedules(origin: str, documents: Sequence[Any]) -> Iterator[SourcedDocument]:
    for number, document in enumerate(documents, start=1):
        where = _name(origin) + (f", document {number}" if len(documents) > 1 else "")
        several = document
        if isinstance(document, dict) and isinstance(document.get("schedules"), list):
            if set(document) != {"schedules"}:
                raise FileError(where, "has other names beside schedules")
            several = document["schedules"]
        if isinstance(several, dict):
            yield SourcedDocument(several, where)
            continue
        if not isinstance(several, list):
            raise FileError(where, "is neither a schedule nor a list of schedules")
        for place, each in enumerate(several, start=1):
            if not isinstance(each, dict):
                raise FileError(f"{where}, item {place}", "is not a schedule")
            yield SourcedDocument(each, f"{where}, item {place}")


def _from_json(text: str, origin: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FileError(origin, f"is not JSON: {error}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = _twice(name for name, _ in pairs)
    if twice is not None:
        raise ValueError(f'"{twice}" is given twice')
    return dict(pairs)


def _twice(names: Iterable[str]) -> str | None:
    """Return the first duplicate name. None: there is none."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _explained(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return problem if mark is None else f"{problem} at line {mark.line + 1}, column {mark.column + 1}"


def _name(origin: str) -> str:
    return "stdin" if origin == STDIN else origin


class _Loader(yaml.SafeLoader):
    """A safe loader without the surprises of YAML 1.1."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        twice = _twice(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        if twice not in (None, "<<"):
            message = f'"{twice}" is given twice'
            raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
        return super().construct_mapping(node, deep)


_BOOL = "tag:yaml.org,2002:bool"
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_SURPRISING = (_BOOL, _INT, _FLOAT, "tag:yaml.org,2002:timestamp")

_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _SURPRISING]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver(_INT, re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?$"),
    list("-+0123456789."),
)


# --- writing ---------------------------------------------------------------------------------------


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    lines = text.split("\n")
    # YAML treats more characters as line breaks, such as separators, unless they are escaped.
    if not all(line.isprintable() for line in lines):
        style = '"'
    elif len(lines) > 1 and all(line == line.rstrip() for line in lines):
        style = "|"
    else:
        style = None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)


def _dump(document: Any) -> str:
    return yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=10_000
    )
