"""Finds the worker's registered functions in the template process. Nothing else is ever looked up."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from foliot.kinds.function_target import Task, describe_task
from foliot.model.errors import SettingError
from foliot.worker.isolation.origin import Origin

SCRIPT_NAME = "__foliot_script__"
"""Name of the worker's `__main__` module here, so that its `if __name__ == "__main__"` part does not run."""
WITHOUT_CREDENTIALS = (
    "Isolated functions run without Foliot's credentials; "
    "make it an async function, or register it with isolation='thread'"
)

_is_template = False
_withheld: frozenset[str] = frozenset()


class OnlyLoading(BaseException):
    """Raised to end an import: code is imported here only for its functions and must not start anything."""


def refuse_in_template() -> None:
    """Raise OnlyLoading in the template, to stop a script that starts the application. Its definitions so far
    are used."""
    if _is_template:
        raise OnlyLoading


def refuse_without(setting: str) -> None:
    """Raise SettingError if this isolated process was started without this setting."""
    if setting in _withheld:
        raise SettingError(f"{setting} is not available in an isolated function. {WITHOUT_CREDENTIALS}")


def load(
    origins: Sequence[Origin], withheld: frozenset[str] = frozenset()
) -> tuple[dict[str, Task], dict[str, str]]:
    """Import tasks; return those that can run here, and the reason for each that can't.

    `withheld`: settings that the worker has but this process has not.
    """
    global _is_template, _withheld
    _is_template, _withheld = True, withheld
    found: dict[str, Task] = {}
    refused: dict[str, str] = {}
    failed: dict[tuple[str, str | None], str] = {}
    for origin in origins:
        source = (origin.module, origin.file)
        try:
            if source in failed:
                raise LookupError(failed[source])
            try:
                module = _module_of(origin)
            except (Exception, SystemExit) as error:
                failed[source] = f"{origin.module} can't be imported: {_describe(error)}"
                raise LookupError(failed[source]) from error
            found[origin.name] = describe_task(_function_of(origin, module), name=origin.name)
        except Exception as error:
            refused[origin.name] = str(error)
    return found, refused


def _describe(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    needs_withheld = isinstance(error, KeyError) and error.args and error.args[0] in _withheld
    return f"{text}. {WITHOUT_CREDENTIALS}" if needs_withheld else text


def _module_of(origin: Origin) -> ModuleType:
    if origin.is_script:
        return _script(origin)
    known = sys.modules.get(origin.module)
    if known is not None and _is_file(getattr(known, "__file__", None), origin.file):
        return known
    try:
        spec = importlib.util.find_spec(origin.module)
    except (ImportError, ValueError):
        spec = None
    if spec is not None and _is_file(spec.origin, origin.file):
        return importlib.import_module(origin.module)
    return _from_file(origin.module, origin.file)


def _script(origin: Origin) -> ModuleType:
    name = SCRIPT_NAME if origin.module == "__main__" else origin.module
    package = name.rpartition(".")[0]
    if package:
        importlib.import_module(package)
    return _from_file(name, origin.file, is_script=True)


def _is_file(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one is other
    return Path(one).resolve() == Path(other).resolve()


def _from_file(name: str, file: str | None, *, is_script: bool = False) -> ModuleType:
    known = sys.modules.get(name)
    if known is not None and _is_file(getattr(known, "__file__", None), file):
        return known
    spec = None if file is None else importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} has no file")
    module = importlib.util.module_from_spec(spec)
    # Don't replace another module of this name: this process may need it, even if the worker has none.
    is_registered = sys.modules.setdefault(name, module) is module
    try:
        spec.loader.exec_module(module)
    except BaseException as end:
        # A script may end by running the application or by sys.exit(). Its functions are defined by then.
        if is_script and isinstance(end, OnlyLoading | SystemExit):
            return module
        if is_registered:
            del sys.modules[name]
        raise
    return module


def _function_of(origin: Origin, module: ModuleType) -> Any:
    found: Any = module
    for part in origin.qualname.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise LookupError(f"{origin.module} has no {origin.qualname}") from None
    while not _is_same(found, origin):
        found = getattr(found, "__wrapped__", None)
        if found is None:
            raise LookupError(f"{origin.module}.{origin.qualname} is not the function that was registered")
    return found


def _is_same(found: Any, origin: Origin) -> bool:
    code = getattr(found, "__code__", None)
    return (getattr(code, "co_name", None), getattr(code, "co_firstlineno", None)) == (
        origin.code_name,
        origin.first_line,
    )
