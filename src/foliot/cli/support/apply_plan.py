"""Plan of applying files: computed by the server, and shown before anything is changed."""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from foliot.cli.support.api_failures import ApiRefusedError, CommandError
from foliot.cli.support.documents import SourcedDocument
from foliot.cli.support.output import Document, is_terminal
from foliot.cli.support.text import one_line
from foliot.model.errors import Problem

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient

_SIGNS = {"create": "+", "update": "~", "delete": "-", "conflict": "!", "unchanged": "="}
_COLOURS = {"create": "green", "update": "yellow", "delete": "red", "conflict": "red"}
_DONE = {"create": "created", "update": "updated", "delete": "deleted", "unchanged": "unchanged"}
_PLACE = re.compile(r"/schedules/(\d+)(/.*)?")
LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The schedules to apply, and how."""

    schedules: Sequence[SourcedDocument]
    source: str = "default"
    prunes: bool = False
    adopts: bool = False
    reason: str | None = None

    def plan(self, api: "ApiClient") -> "ApplyPlan":
        return self._send(api, is_dry_run=True)

    def carry_out(self, api: "ApiClient") -> "ApplyPlan":
        return self._send(api, is_dry_run=False)

    def _send(self, api: "ApiClient", *, is_dry_run: bool) -> "ApplyPlan":
        body = {
            "schedules": [each.document for each in self.schedules],
            "source": self.source,
            "prune": self.prunes,
            "adopt": self.adopts,
            "reason": self.reason,
            "dry_run": is_dry_run,
        }
        try:
            return ApplyPlan(api.post("schedules/apply", body))
        except ApiRefusedError as error:
            if not error.problems:
                raise
            message = "; ".join(self._where(problem) for problem in error.problems)
            raise CommandError(message, error.exit) from None

    def _where(self, problem: Problem) -> str:
        """Format a problem with the schedule's name and file, instead of its index in the request."""
        found = _PLACE.fullmatch(problem.pointer)
        if found is None or int(found[1]) >= len(self.schedules):
            return str(problem)
        each = self.schedules[int(found[1])]
        message = str(replace(problem, pointer=found[2] or ""))
        if not each.origin:
            return message
        name = each.document.get("name")
        where = f'"{name}" ({each.origin})' if isinstance(name, str) else each.origin
        return f"{where}: {message}"


class ApplyPlan:
    """The server's response: what it would do or has done."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.items: list[dict[str, Any]] = list(document["items"])

    def of(self, *actions: str) -> list[dict[str, Any]]:
        return [item for item in self.items if item["action"] in actions]

    @property
    def has_changes(self) -> bool:
        return bool(self.of("create", "update", "delete", "conflict"))

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [item for item in self.items if item.get("error")]

    def as_done(self) -> "ApplyPlan":
        """Return the plan as carried out, for a plan without changes."""
        return ApplyPlan({**self.document, "dry_run": False})

    def lines(self) -> list[str]:
        """Return one line for each schedule that would change, and a summary line."""
        return [*(_line(item) for item in self.items if item["action"] != "unchanged"), self.summary()]

    def summary(self) -> str:
        counts = {action: len(self.of(action)) for action in _SIGNS}
        parts = [
            f"{counts[action]} to {action}" for action in ("create", "update", "delete") if counts[action]
        ]
        parts += [f"{counts['conflict']} in other hands"] if counts["conflict"] else []
        parts += [f"{counts['unchanged']} unchanged"] if counts["unchanged"] else []
        return ", ".join(parts) or "nothing to do"

    def done(self) -> list[str]:
        """Return one line for each schedule that was changed."""
        return [
            f"{_DONE[item['action']]} {one_line(item['name'])}"
            for item in self.of("create", "update", "delete")
            if not item.get("error")
        ]


def painted(lines: Sequence[str], *, is_err: bool) -> str:
    """Join the lines, with colours if they go to a terminal."""
    if not is_terminal(sys.stderr if is_err else sys.stdout) or os.environ.get("NO_COLOR"):
        return "\n".join(lines)
    colour_of = {_SIGNS[action]: colour for action, colour in _COLOURS.items()}
    return "\n".join(typer.style(line, fg=colour_of.get(line[:1])) for line in lines)


def _line(item: Mapping[str, Any]) -> str:
    line = f"{_SIGNS[item['action']]} {item['action']} {item['name']}"
    details = [_change(change) for change in item["changes"]] if item["action"] == "update" else []
    if item["detail"]:
        details.insert(0, item["detail"])
    return one_line(f"{line} ({', '.join(details)})" if details else line)


def _change(change: Mapping[str, Any]) -> str:
    where = str(change["pointer"]).lstrip("/").replace("/", ".")
    return f"{where}: {_value(change['before'])} -> {_value(change['after'])}"


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"
