"""Show progress: a bar on a terminal, otherwise lines on stderr."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from foliot.cli.support.output import Document, is_terminal, say
from foliot.cli.support.text import one_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """A progress bar on stderr, as a context manager. Without a terminal it shows nothing."""

    def __init__(self, title: str, total: float | None = None) -> None:
        self._title = one_line(title)
        self._total = total
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    @property
    def is_shown(self) -> bool:
        return self._progress is not None

    def __enter__(self) -> Self:
        if is_terminal(sys.stderr):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TaskProgressColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._progress.add_task(self._title, total=self._total)
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def update(self, done: float | None, text: str = "", total: float | None = None) -> None:
        if self._progress is None or self._task is None:
            return
        title = f"{self._title}: {one_line(text)}" if text else self._title
        self._progress.update(self._task, description=title, completed=done, total=total)


class ExecutionBar(Bar):
    """Progress of an execution. Without a terminal, each change is a line on stderr."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._last_text = ""

    def show(self, execution: Document) -> None:
        progress: dict[str, Any] = execution.get("progress") or {}
        fraction = progress.get("fraction")
        text = str(execution["status"])
        if execution["status"] == "retrying" or execution["attempt"] > 1:
            text += f" (attempt {execution['attempt']})"
        if progress.get("text"):
            text += f", {progress['text']}"
        is_known = isinstance(fraction, int | float)
        self.update(fraction if is_known else None, text, total=1.0 if is_known else None)
        if is_known:
            text += f" ({fraction:.0%})"
        if not self.is_shown and text != self._last_text:
            say(f"{execution['execution_id']}: {text}")
        self._last_text = text
