"""Where the code of a task function comes from, told so that another process can find the same function."""

import sys
from dataclasses import dataclass

from foliot.target.function import Task


@dataclass(frozen=True, slots=True)
class Origin:
    """What the template needs to find a function that this process has registered."""

    name: str
    """Of the task."""
    module: str
    file: str | None
    """Of the module: a name may lead elsewhere, and a file of `--tasks` may have none that leads to it."""
    is_script: bool
    """Whether it is what this process was started with: it may go on to run things."""
    qualname: str
    code_name: str | None
    """With `first_line`, tells the function from what decorators have put in its place."""
    first_line: int | None


def origin_of(task: Task) -> Origin:
    function = task.function
    module = sys.modules.get(function.__module__)
    is_script = function.__module__ == "__main__"
    # `python -m package.module` runs a module that has a name all the same.
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
