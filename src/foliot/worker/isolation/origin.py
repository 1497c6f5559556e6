"""Describes where a task function is defined, so that another process can find it."""

import sys
from dataclasses import dataclass

from foliot.kinds.function_target import Task


@dataclass(frozen=True, slots=True)
class Origin:
    """What the template needs to find a function that the worker has registered."""

    name: str
    """Name of the task."""
    module: str
    file: str | None
    """File of the module. The module's name may lead to another file, or to none for a file given by
    `--tasks`."""
    is_script: bool
    """Whether the module is the script this process was started with. It may go on to start the
    application."""
    qualname: str
    code_name: str | None
    """Together with `first_line`, distinguishes the function from the wrappers of its decorators."""
    first_line: int | None


def origin_of(task: Task) -> Origin:
    function = task.function
    module = sys.modules.get(function.__module__)
    is_script = function.__module__ == "__main__"
    # A module run by `python -m package.module` is `__main__`, but its spec has the real name.
    spec = getattr(module, "__spec__", None)
    code = getattr(function, "__code__", None)
    return Origin(
        name=task.name,
        module=spec.name if is_script and spec is not None else function.__module__,
        file=getattr(module, "__file__", None),
        is_script=is_script,
        qualname=function.__qualname__,
        code_name=getattr(code, "co_name", None),
        first_line=getattr(code, "co_firstlineno", None),
    )
