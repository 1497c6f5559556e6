"""Check whether a target can run, as far as this process and the database know.

A process that has loaded the task functions checks with them. Other processes, for example one with only the
role `api`, use what workers registered in the database: the name, the schema of the arguments, and whether an
operator disabled the function.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema import Draft202012Validator

from foliot.db.database import Database
from foliot.db.rows.registry_rows import RegisteredTask, Registry
from foliot.kinds.function_target import TaskRegistry
from foliot.kinds.target_protocol import TargetRunner, available_targets
from foliot.model.errors import InvalidError, Problem
from foliot.model.kind import BaseTarget
from foliot.model.schedule import ScheduleSpec, pointer_to
from foliot.planning.admit import CheckTarget
from foliot.planning.task_defaults import TaskDefaults, fill_in

MAX_PROBLEMS = 20


class DefinitionChecker:
    def __init__(
        self,
        database: Database,
        tasks: TaskRegistry | None = None,
        runners: Mapping[str, TargetRunner] | None = None,
    ) -> None:
        self._registry = Registry(database)
        self._tasks = tasks or TaskRegistry()
        self._runners = runners or {}

    async def checker(self, spec: ScheduleSpec) -> CheckTarget:
        """Return a function that checks this definition's target. It does no I/O: all data is read here."""
        target = spec.target
        if target.task_name is None or target.task_name in self._tasks:
            return self._check
        known = await self._registry.task(target.task_name)
        if known is None:
            near = await self._nearest(target.task_name)
            problem = _unknown(target.task_name, near)
            return lambda _spec: [problem]
        args = getattr(target, target.arguments_field)
        return lambda _spec: check_registered(known, args)

    async def defaults_of(self, specs: Iterable[ScheduleSpec]) -> Mapping[str, TaskDefaults]:
        """Return the defaults of the task functions that these definitions use, by function name."""
        names = {spec.target.task_name for spec in specs if spec.target.task_name is not None}
        here = {name: self._tasks.get(name).defaults for name in names if name in self._tasks}
        others = names - here.keys()
        return {**here, **(await self._registry.task_defaults(others) if others else {})}

    async def complete(self, spec: ScheduleSpec) -> ScheduleSpec:
        """Return the definition with missing values filled in from its task function. Raises InvalidError."""
        return completed(spec, await self.defaults_of([spec]))

    async def check_arguments(self, target: BaseTarget, args: Mapping[str, Any]) -> None:
        """Check that a target accepts these arguments, merged over those of its schedule.

        Raises InvalidError.
        """
        if target.task_name is None:
            problems = target.check_arguments(args)
        else:
            problems = await self._check_task_arguments(target, target.task_name, args)
        if problems:
            raise InvalidError(problems)

    async def _check_task_arguments(
        self, target: BaseTarget, name: str, args: Mapping[str, Any]
    ) -> list[Problem]:
        whole = {**getattr(target, target.arguments_field), **args}
        if name in self._tasks:
            return self._tasks.get(name).check(whole, "/args")
        known = await self._registry.task(name)
        return [] if known is None else check_registered(known, whole, "/args")

    def _check(self, spec: ScheduleSpec) -> list[Problem]:
        if spec.target.is_event:
            return []  # no worker has to run it
        runner = self._runners.get(spec.target.kind)
        if runner is None:
            detail = f"targets of kind {spec.target.kind} can't be run by this process"
            kinds = ", ".join(sorted(available_targets(self._runners)))
            hint = f"{spec.target.remedy}; or one of: {kinds}"
            return [Problem("/target/kind", "unavailable", detail, hint)]
        return runner.check(spec)

    async def _nearest(self, name: str) -> list[str]:
        names = [*await self._registry.task_names(), *(task.name for task in self._tasks)]
        return difflib.get_close_matches(name, names, n=1)


def completed(spec: ScheduleSpec, defaults: Mapping[str, TaskDefaults]) -> ScheduleSpec:
    """Fill in missing values from `defaults`, which has task function names as keys. Raises InvalidError."""
    name = spec.target.task_name
    return spec if name is None else fill_in(spec, defaults.get(name))


def _unknown(name: str, near: list[str]) -> Problem:
    detail = f'no worker has registered a task function "{name}"'
    hint = (
        f'did you mean "{near[0]}"?' if near else "start a worker that has it: foliot worker --tasks MODULE"
    )
    return Problem("/target/name", "unknown_task", detail, hint)


def check_registered(
    task: RegisteredTask, args: Mapping[str, Any], pointer: str = "/target/args"
) -> list[Problem]:
    """Check arguments with the schema that a worker registered for the task function."""
    if not task.is_active:
        detail = f'task function "{task.name}" is switched off'
        return [Problem("/target/name", "inactive_task", detail, "another one, or switch it on again")]
    names = sorted(task.args_schema.get("properties", {}))
    hint = f"{task.name} takes {', '.join(names)}" if names else f"{task.name} takes no arguments"
    found = []
    for error in Draft202012Validator(dict(task.args_schema)).iter_errors(dict(args)):
        where = pointer + pointer_to(error.absolute_path)
        found.append(Problem(where, str(error.validator), error.message[:500], hint))
        if len(found) == MAX_PROBLEMS:
            break
    return found
