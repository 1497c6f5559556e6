"""Formats a task's failure: the error as `Type: message`, and the traceback from the task's code on."""

import asyncio
import traceback
from pathlib import Path

from foliot.model.errors import InvalidError

_FOLIOT = Path(__file__).resolve().parent.parent
_OWN = (
    f"{_FOLIOT / 'worker'}/",
    f"{_FOLIOT / 'kinds'}/",
    f"{_FOLIOT / 'blocking_calls.py'}",
    f"{Path(asyncio.__file__).resolve().parent}/",
)
"""Code whose frames only call the task. They are removed from tracebacks."""


def error_of(failure: BaseException) -> str:
    """Format an error like a traceback's last line: `KeyError: 'b'`. An InvalidError has no type prefix."""
    if isinstance(failure, InvalidError):
        return str(failure)
    name = type(failure).__name__
    try:
        message = str(failure)
    except Exception:
        message = "<its text can't be made>"
    return f"{name}: {message}" if message else name


def traceback_of(failure: BaseException) -> str:
    """Format a traceback without Foliot's own leading frames, also in its causes. Keep them if there are no
    others."""
    outermost = traceback.TracebackException.from_exception(failure)
    seen: set[int] = set()
    left = [outermost]
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        first = next((at for at, frame in enumerate(each.stack) if not frame.filename.startswith(_OWN)), 0)
        del each.stack[:first]
        left += [other for other in (each.__cause__, each.__context__, *(each.exceptions or ())) if other]
    return "".join(outermost.format())
