"""Load the modules or files of `--tasks`, whose Foliot objects define task functions and schedules.

Only the operator who starts the process chooses them. Data stored by users never causes an import.
"""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

import foliot
from foliot.model.errors import FoliotError, SettingError
from foliot.sdk.app import Foliot

_FOLIOT = Path(foliot.__file__).parent
_loading: ContextVar[str | None] = ContextVar("loading", default=None)


def load_app(names: Sequence[str], *extra: Foliot) -> Foliot:
    """Load the modules and merge their applications and `extra` into one."""
    found = {id(app): app for name in names for app in _apps_of(name)}
    return merge([*found.values(), *extra])


def refuse_while_loading() -> None:
    """Raise SettingError if a module calls `app.run()` while it is imported: the import would never end."""
    if _loading.get() is not None:
        raise SettingError('it calls app.run(); put that below `if __name__ == "__main__":`')


def merge(apps: Sequence[Foliot]) -> Foliot:
    """Merge several applications into one. Raises SettingError if they contradict each other."""
    urls = {app.url for app in apps if app.url is not None}
    if len(urls) > 1:
        raise SettingError("the modules of --tasks name different databases; one process has one")
    merged = Foliot(next(iter(urls), None))
    for app in apps:
        for task in app.tasks:
            if task.name in merged.tasks and not _is_same_code(
                task.function, merged.tasks.get(task.name).function
            ):
                other = merged.tasks.get(task.name).handler_path
                raise SettingError(
                    f'task function "{task.name}" is defined twice, as {other} and as {task.handler_path}; '
                    "give one of them another name"
                )
            merged.tasks.add(task)
        for name, spec in app.schedules.items():
            if merged.schedules.setdefault(name, spec) != spec:
                raise SettingError(f'schedule "{name}" is declared twice, and not alike; rename one of them')
        for group, consumer in app.consumers.items():
            known = merged.consumers.setdefault(group, consumer)
            if known != consumer and not _is_same_code(known.handler, consumer.handler):
                raise SettingError(f'group "{group}" has two handlers of events; give one another group')
    return merged


def _is_same_code(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Whether two functions have equal code: a file imported under two names defines its functions twice."""
    codes = [(getattr(each, "__code__", each), getattr(each, "__self__", None)) for each in (one, other)]
    return codes[0] == codes[1]


def _apps_of(name: str) -> list[Foliot]:
    module = _import(name)
    found = [each for each in vars(module).values() if isinstance(each, Foliot)]
    if not found:
        raise SettingError(f"--tasks {name} has no Foliot object; it needs one such as `app = Foliot()`")
    return found


def _import(name: str) -> ModuleType:
    _put_on_path(Path.cwd())
    token = _loading.set(name)
    try:
        return _import_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise SettingError(f"--tasks {name} can't be imported: {_reason(error)}") from error
    finally:
        _loading.reset(token)


def _import_file(path: Path) -> ModuleType:
    file = path.resolve()
    if not file.is_file():
        raise SettingError("there is no such file")
    _put_on_path(file.parent)  # as Python does for a script
    name = file.stem
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) == str(file):
            return known
        name = "_".join(file.with_suffix("").parts[1:])
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _put_on_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _reason(error: BaseException) -> str:
    """Return the error text and the last line of the user's code in the traceback."""
    text = str(error) if isinstance(error, FoliotError) else f"{type(error).__name__}: {error}"
    places = [
        f"{Path(frame.filename).name}, line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen")
        and Path(frame.filename) != Path(importlib.__file__)
        and not Path(frame.filename).is_relative_to(_FOLIOT)
    ]
    return f"{text} ({places[-1]})" if places else text
