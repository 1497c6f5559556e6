"""Task functions: Python callables that an application registered under a name.

Only registered functions can run: a schedule names a task, never an import path. The arguments' schema is
made from the signature. Arguments are checked when a schedule is saved and again when it runs.
"""

import inspect
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, ClassVar, Literal, Protocol, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema

from foliot.blocking_calls import in_thread
from foliot.kinds.target_protocol import Assignment, AttemptFailedError, Fire, Log, RunnerContext
from foliot.kinds.task_failures import error_of, traceback_of
from foliot.kinds.task_logs import capturing
from foliot.kinds.task_tracing import joined
from foliot.model.errors import FoliotError, InvalidError, Problem
from foliot.model.kind import BaseTarget, CliOption
from foliot.model.policy import RetryPolicy
from foliot.model.schedule import ScheduleSpec
from foliot.planning.task_defaults import TaskDefaults

TaskCallable = Callable[..., Any] | Callable[..., Awaitable[Any]]
IsolationKind = Literal["process", "thread"]
TaskName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_.:-]*$")]
DEFAULT_TIMEOUT_S = 300.0


class UnknownTaskError(FoliotError):
    """No task function of that name is registered in this process."""

    def __init__(self, name: str, known: list[str]) -> None:
        names = ", ".join(known) or "none"
        super().__init__(f'no task function "{name}" is registered here (registered: {names})')
        self.name = name


class RemoteFailedError(FoliotError):
    """A function failed in another process. The text is its error, for example `ValueError: no`."""

    def __init__(self, message: str, remote_traceback: str | None = None) -> None:
        super().__init__(message)
        self.remote_traceback = remote_traceback
        """The traceback in the other process. None: it could not send one."""


_is_async = lru_cache(maxsize=4096)(inspect.iscoroutinefunction)


@dataclass(frozen=True, slots=True)
class Task:
    """A registered function and its options."""

    name: str
    function: TaskCallable
    arguments: type[BaseModel]
    fire_parameter: str | None
    """Name of the parameter that takes the Fire. None: the function has none."""
    display_name: str
    description: str
    queue: str | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    retry: RetryPolicy | None = None
    is_system: bool = False
    isolation: IsolationKind | None = None
    """Where a sync function runs; None: in a process if another process can find it, else in a thread."""

    @property
    def is_async(self) -> bool:
        return _is_async(self.function)

    @property
    def handler_path(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @property
    def handler_type(self) -> str:
        return "async_function" if self.is_async else "sync_function"

    @property
    def defaults(self) -> TaskDefaults:
        """Default values for schedules that don't set these fields."""
        return TaskDefaults(self.queue, self.timeout_s, self.retry)

    @property
    def args_schema(self) -> dict[str, Any]:
        return self.arguments.model_json_schema()

    def check(self, args: dict[str, Any], pointer: str = "/target/args") -> list[Problem]:
        try:
            self.arguments.model_validate(args)
        except ValidationError as error:
            return self._problems_of(error, pointer)
        return []

    def _problems_of(self, error: ValidationError, pointer: str = "/target/args") -> list[Problem]:
        return [
            Problem(
                "/".join([pointer, *(str(part) for part in item["loc"])]),
                item["type"],
                item["msg"].removeprefix("Value error, "),
                self._expected(),
            )
            for item in error.errors(include_url=False)
        ]

    def _expected(self) -> str:
        names = list(self.arguments.model_fields)
        return f"{self.name} takes {', '.join(names)}" if names else f"{self.name} takes no arguments"

    def bind(self, args: dict[str, Any], fire: Fire) -> dict[str, Any]:
        """Validate arguments and return them as keyword arguments for the function. Raises InvalidError."""
        try:
            valid = self.arguments.model_validate(args)
        except ValidationError as error:
            raise InvalidError(self._problems_of(error)) from None
        bound = dict(valid.__dict__)
        if self.fire_parameter is not None:
            bound[self.fire_parameter] = fire
        return bound


class TaskRegistry:
    """The task functions of this process, by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def add(self, task: Task) -> None:
        other = self._tasks.get(task.name)
        # A module that is imported twice (as a script and by name) registers the same function again.
        if other is not None and other.function.__qualname__ != task.function.__qualname__:
            raise InvalidError.at(
                "/name",
                "taken",
                f'a task function "{task.name}" is registered already: {other.handler_path}',
                "give one of them another name",
            )
        self._tasks[task.name] = task

    def get(self, name: str) -> Task:
        try:
            return self._tasks[name]
        except KeyError:
            raise UnknownTaskError(name, sorted(self._tasks)) from None

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def __iter__(self) -> Any:
        return iter(self._tasks.values())

    def __len__(self) -> int:
        return len(self._tasks)


def describe_task(function: TaskCallable, *, name: str | None = None, **options: Any) -> Task:
    """Make a Task from a function's signature. Raises InvalidError if a schedule could not call it."""
    task_name = name or getattr(function, "__name__", None)
    if task_name is None or not hasattr(function, "__qualname__"):
        raise InvalidError.at("/task", "function", f"{function!r} is not a function", "a def or async def")
    hints = get_type_hints(function)
    fields: dict[str, Any] = {}
    fire_parameter = None
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, Any)
        if hint is Fire:
            fire_parameter = parameter.name
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InvalidError.at(
                f"/{parameter.name}",
                "signature",
                f'task function "{task_name}" can\'t take {parameter}',
                "name every parameter: arguments are passed by name",
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hint, default)
    arguments = create_model(
        f"{task_name}_arguments",
        __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=()),
        **fields,
    )
    try:
        arguments.model_json_schema()
    except PydanticInvalidForJsonSchema as error:
        raise InvalidError.at(
            "/task",
            "signature",
            f'task function "{task_name}" has a parameter that no schedule can give: {error.message}',
            "arguments are JSON: text, numbers, lists, objects, Pydantic models",
        ) from None
    _check_isolation(function, task_name, options.get("isolation"))
    summary = (inspect.getdoc(function) or "").strip()
    options.setdefault("description", summary.splitlines()[0] if summary else "")
    options.setdefault("display_name", task_name.replace("_", " ").strip().capitalize())
    return Task(
        name=task_name, function=function, arguments=arguments, fire_parameter=fire_parameter, **options
    )


def _check_isolation(function: TaskCallable, name: str, isolation: IsolationKind | None) -> None:
    if isolation is None:
        return
    if isolation not in ("process", "thread"):
        raise InvalidError.at("/isolation", "unknown", f"{isolation!r} is none", '"process" or "thread"')
    if inspect.iscoroutinefunction(function):
        message = f'task function "{name}" is async and runs on the event loop'
        raise InvalidError.at("/isolation", "async", message, "leave isolation out, or make it a plain def")
    why = why_unreachable(function)
    if isolation == "process" and why is not None:
        message = f'task function "{name}" can\'t run in a process: {why}'
        raise InvalidError.at("/isolation", "unreachable", message, "define it at the top of a module")


def why_unreachable(function: TaskCallable) -> str | None:
    """Return why no other process can find this function by its name. None: one may be able to."""
    if "<lambda>" in function.__qualname__:
        return "a lambda has no name to find it by"
    if "<locals>" in function.__qualname__:
        return f"{function.__qualname__} exists only inside a function"
    if getattr(sys.modules.get(function.__module__), "__file__", None) is None:
        return f"its module {function.__module__} has no file"
    return None


class Isolation(Protocol):
    """Runs functions in separate processes."""

    async def start(self) -> None:
        """Prepare, so that `serves` can answer."""
        ...

    def serves(self, name: str) -> bool: ...

    async def run(self, task: Task, args: dict[str, Any], fire: Fire, log: Log) -> Any:
        """Run the function and return its result. If cancelled, return once the process is gone."""
        ...


class FunctionTarget(BaseTarget):
    """A registered task function, by name. Never a path: only what worker code registered can run."""

    display_name: ClassVar = "Task function"
    position: ClassVar = 1
    cli_options: ClassVar = (CliOption("--function", ("name",), "TASK", "Run a task function."),)
    arguments_field: ClassVar = "args"
    task_field: ClassVar = "name"

    kind: Literal["function"] = "function"
    name: TaskName
    args: dict[str, JsonValue] = Field(default_factory=dict)

    def describe(self) -> str:
        return f"function {self.name}"

    @classmethod
    def open_runner(cls, context: RunnerContext) -> "FunctionRunner":
        return FunctionRunner(context.tasks, context.isolation)


class FunctionRunner:
    """Runs task functions: async ones on the event loop, others in a process or a thread.

    A process is really stopped when its attempt is cancelled. A thread can't be stopped: its function runs to
    its end, although its result is no longer used.
    """

    def __init__(self, registry: TaskRegistry, processes: Isolation | None = None) -> None:
        self.inactive: frozenset[str] = frozenset()
        """Tasks that an operator has switched off: refused when a schedule is saved and when it runs."""
        self._registry = registry
        self._processes = processes

    def check(self, spec: ScheduleSpec) -> list[Problem]:
        assert isinstance(spec.target, FunctionTarget)
        try:
            task = self._registry.get(spec.target.name)
        except UnknownTaskError as error:
            return [Problem("/target/name", "unknown_task", str(error), "register it with @app.task")]
        if task.name in self.inactive:
            detail = f'task function "{task.name}" is switched off'
            return [Problem("/target/name", "inactive_task", detail, "another one, or switch it on again")]
        return task.check(spec.target.args)

    async def run(self, assignment: Assignment) -> Any:
        # A cast, not an assertion: isinstance on a Pydantic model takes as long as the call.
        task = self._registry.get(cast("FunctionTarget", assignment.spec.target).name)
        if task.name in self.inactive:
            raise AttemptFailedError(f'task function "{task.name}" is switched off', is_permanent=True)
        processes = self._processes
        if processes is not None and not task.is_async and await self._is_isolated(task, processes):
            return await processes.run(task, assignment.args, assignment.fire, assignment.log)
        bound = task.bind(assignment.args, assignment.fire)
        with capturing(assignment.log), joined(assignment.fire):
            if task.is_async:
                try:
                    return await task.function(**bound)
                except (SystemExit, KeyboardInterrupt) as leaving:
                    raise _stayed(leaving) from leaving
            return await in_thread(partial(_call, task.function, bound), name=f"foliot-task {task.name}")

    async def close(self) -> None:
        """Do nothing: processes belong to the instance."""

    async def _is_isolated(self, task: Task, processes: Isolation) -> bool:
        if task.isolation == "thread":
            return False
        # An explicit "process" never falls back to a thread: `run` then reports why there is no process.
        if task.isolation == "process":
            return True
        if why_unreachable(task.function) is not None:
            return False
        await processes.start()
        return processes.serves(task.name)


def _call(function: Callable[..., Any], bound: dict[str, Any]) -> Any:
    try:
        return function(**bound)
    except (SystemExit, KeyboardInterrupt, StopIteration) as leaving:
        raise _stayed(leaving) from leaving


def _stayed(leaving: BaseException) -> RemoteFailedError:
    """Turn SystemExit and similar exceptions into a failure of the task, so that the worker does not exit. A
    StopIteration is converted too: a future does not accept it."""
    return RemoteFailedError(error_of(leaving), traceback_of(leaving))
