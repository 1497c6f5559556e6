"""Plan an import with the server, show the plan, and carry it out.

A schedule that the server refuses is reported with the reason. The others are imported nevertheless.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from foliot.cli.support.api_failures import ApiRefusedError
from foliot.cli.support.output import Cell, Row
from foliot.importers.import_result import ImportResult, Item
from foliot.model.schedule import ScheduleSpec

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient

AT_ONCE = 100
"""Schedules per request: large enough to be fast, small enough for the progress bar to move."""
_PLACE = re.compile(r"/schedules/(\d+)(/.*)?")
_STYLES = {"create": "green", "update": "yellow", "conflict": "red", "refused": "red", "failed": "red"}
REFUSED = "refused"
_NOT_MADE = (REFUSED, "failed", "conflict")


@dataclass(frozen=True, slots=True)
class Step:
    """The planned or completed action for one schedule."""

    item: Item
    action: str
    """`create`, `update`, `unchanged`, `conflict`; `refused` or `failed` with an error."""
    error: str | None = None
    code: str = ""
    schedule_id: str | None = None

    @property
    def is_made(self) -> bool:
        return self.action not in _NOT_MADE

    @property
    def is_change(self) -> bool:
        return self.action in ("create", "update")

    def document(self) -> dict[str, Any]:
        return {
            "name": self.item.name,
            "where": self.item.where,
            "action": self.action,
            "error": self.error,
            "schedule_id": self.schedule_id,
            "notes": list(self.item.notes),
            "document": self.item.document,
        }


@dataclass(frozen=True, slots=True)
class Import:
    """Schedules that are imported into a server."""

    found: ImportResult
    source: str
    adopts: bool = False

    def plan(self, api: "ApiClient") -> list[Step]:
        """Return the planned actions. The server checks each schedule as it does when creating it."""
        return [step for items in _portions(self.found.items) for step in self._planned(api, items)]

    def carry_out(self, api: "ApiClient", steps: Sequence[Step]) -> Iterator[Step]:
        """Carry out the steps in batches. An interrupted import can be completed by importing again."""
        for portion in _portions(steps):
            wanted = [step for step in portion if step.is_change]
            done = self._send(api, [step.item for step in wanted], is_dry_run=False) if wanted else {}
            yield from (done.get(step.item.name, step) for step in portion)

    def _planned(self, api: "ApiClient", items: Sequence[Item]) -> list[Step]:
        refused: dict[str, Step] = {}
        rest = list(items)
        while rest:
            try:
                steps = {**self._send(api, rest, is_dry_run=True), **refused}
                return [steps[item.name] for item in items]
            except ApiRefusedError as error:
                found = _refusals(error, rest)
                if not found:
                    raise
                refused |= found
                rest = [item for item in rest if item.name not in refused]
        return [refused[item.name] for item in items]

    def _send(self, api: "ApiClient", items: Sequence[Item], *, is_dry_run: bool) -> dict[str, Step]:
        body = {
            "schedules": [item.document for item in items],
            "source": self.source,
            "adopt": self.adopts,
            "dry_run": is_dry_run,
        }
        answer = api.post("schedules/apply", body)
        by_name = {item.name: item for item in items}
        return {result["name"]: self._step(by_name[result["name"]], result) for result in answer["items"]}

    def _step(self, item: Item, result: dict[str, Any]) -> Step:
        if result.get("error"):
            return Step(item, "failed", result["error"], result.get("code") or "")
        action, detail = result["action"], result["detail"]
        if action == "update" and detail and not self.adopts:
            # `apply` takes over schedules created by hand. The names of an import are generated, so an
            # existing schedule of that name is probably a different one.
            return Step(item, "conflict", "a schedule of this name exists already; adopt would take it over")
        return Step(item, action, detail if action == "conflict" else None, schedule_id=result["schedule_id"])


def _portions(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE))


def _refusals(error: ApiRefusedError, items: Sequence[Item]) -> dict[str, Step]:
    """Return the items that the server refused, by name."""
    found: dict[str, Step] = {}
    for problem in error.problems:
        place = _PLACE.fullmatch(problem.pointer)
        if place is None or int(place[1]) >= len(items):
            continue
        item = items[int(place[1])]
        message = str(replace(problem, pointer=place[2] or ""))
        known = found.get(item.name)
        if known is None:
            found[item.name] = Step(item, REFUSED, message, problem.code)
        else:
            found[item.name] = replace(known, error=f"{known.error}; {message}")
    return found


# --- display ----------------------------------------------------------------------------------------------

HEADERS = ("NAME", "FROM", "WHEN", "TARGET", "ACTION")


def row(step: Step) -> Row:
    spec = ScheduleSpec.parse(step.item.document)
    action = step.action if spec.active else f"{step.action} (inactive)"
    return (
        step.item.name,
        step.item.where,
        spec.trigger.describe(),
        spec.target.describe(),
        Cell(action, _STYLES.get(step.action, "")),
    )


def talk(found: ImportResult) -> Iterator[str]:
    """Yield lines: notes about single schedules, notes about all, and what was left out."""
    for item in found.items:
        yield from (f"note: {item.name} ({item.where}): {note}" for note in item.notes)
    yield from (f"note: {note}" for note in found.notes)
    for problem in found.problems:
        yield f"left out: {problem.where}: {problem.what}: {problem.why}"


def summary(steps: Sequence[Step], found: ImportResult, *, is_done: bool) -> str:
    words = {
        "create": "created" if is_done else "to create",
        "update": "updated" if is_done else "to update",
        "unchanged": "unchanged",
        "conflict": "in other hands",
        REFUSED: "refused",
        "failed": "failed",
    }
    counts = {action: sum(step.action == action for step in steps) for action in words}
    parts = [f"{count} {words[action]}" for action, count in counts.items() if count]
    parts += [f"{len(found.problems)} left out"] if found.problems else []
    return ", ".join(parts) or "nothing was found"
