"""Import crontabs: the output of `crontab -l`, and /etc/crontab with its column of users.

A line becomes a schedule that behaves like cron: it starts even if the last run has not ended, skips missed
times, and retries nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from foliot.importers.import_result import RUN_LIMIT_S, ImportBuilder, ImportResult, LeftOutError, literal

SHELL_TASK = "shell"
"""The task function of `foliot.contrib.shell`."""

_AS_CRON_DOES = {
    "timeout_seconds": RUN_LIMIT_S,
    "misfire": {"policy": "skip"},
    "overlap": {"policy": "allow"},
    "retry": {"max_attempts": 1},
}
_ON_ALL = (
    "as with cron, a run starts although the last one still runs (overlap: allow)",
    "as with cron, missed times are not made up for (misfire: skip), and nothing is retried",
    f"cron sets no limit to a run; here each is stopped after {RUN_LIMIT_S // 3600} hours (timeout_seconds)",
)
_FOR_CRON = frozenset(
    {"MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", "CRON_TZ", "RANDOM_DELAY"}
)
"""Variables for cron itself. They are not passed to the commands."""
_VARIABLE = re.compile(r"""(?:(["']?)([A-Za-z_][A-Za-z0-9_]*)\1)\s*=\s*(.*)""")
_VALUE = r"(?:\d{1,2}|[A-Za-z]{3})"
_TERM = re.compile(rf"(?:\*|{_VALUE}-{_VALUE})(?:/\d{{1,3}})?|{_VALUE}")
_RANDOM = re.compile(r"(\d{0,2})~(\d{0,2})")
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?")
_ESCAPE_OR_PERCENT = re.compile(r"\\.|%", re.DOTALL)
_SECRETIVE = re.compile(r"PASS|SECRET|TOKEN|CREDENTIAL|API_?KEY", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Options for reading a crontab and for running its commands."""

    now: datetime
    timezone: str
    """Time zone of lines without CRON_TZ or TZ above them: that of the crontab's machine."""
    is_system: bool = False
    """Whether lines name a user, as in /etc/crontab."""
    url: str | None = None
    """Agent to which commands are posted. None: the task function `shell` runs them."""
    prefix: str = ""


def read(text: str, reading: Reading) -> ImportResult:
    """Return the schedules of a crontab."""
    finds = ImportBuilder(reading.now, reading.prefix)
    environment: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        where = f"line {number}"
        try:
            if assigned := _VARIABLE.fullmatch(stripped):
                environment[assigned[2]] = _unquoted(assigned[3])
                continue
            entry = _entry(stripped, reading.is_system)
            document, notes = _schedule(entry, environment, reading)
        except LeftOutError as error:
            finds.leave_out(where, stripped, str(error))
            continue
        finds.add(name_of(entry.command), document, where=where, notes=notes, what=stripped)
    return finds.found(_ON_ALL)


def _unquoted(value: str) -> str:
    if value[:1] not in ('"', "'"):
        return value
    if len(value) < 2 or value[-1] != value[0]:
        raise LeftOutError("the quote is not closed")
    return value[1:-1]


# --- one line -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    expression: str
    command: str
    stdin: str
    user: str | None
    notes: list[str] = field(default_factory=list)


def _entry(line: str, is_system: bool) -> _Entry:
    notes: list[str] = []
    if line.startswith("@"):
        expression, rest = _first_word(line)
        if expression.lower() == "@reboot":
            raise LeftOutError("@reboot is no time: a schedule does not belong to a machine that boots")
    else:
        parts = line.split(None, 5)
        if len(parts) < 6:
            raise LeftOutError("it is neither a variable nor five fields and a command")
        expression = " ".join(
            _field(part, *span, notes) for part, span in zip(parts[:5], _RANGES, strict=True)
        )
        rest = parts[5]
    user = None
    if is_system:
        user, rest = _first_word(rest)
        if not _USER.fullmatch(user):
            raise LeftOutError(f'"{user}" is no user; a crontab of a user is read without --system')
    elif _first_word(rest)[0] == "root":
        notes.append("its command begins with root, as in a system crontab; that is read with --system")
    command, stdin = _split_at_percent(rest.strip())
    if not command:
        raise LeftOutError("it has no command")
    return _Entry(expression, command, stdin, user, notes)


def _first_word(text: str) -> tuple[str, str]:
    first, *rest = text.split(None, 1) or [""]
    return first, rest[0] if rest else ""


def _field(text: str, low: int, high: int, notes: list[str]) -> str:
    """Return a field in Foliot's syntax. Refuse syntax on which crons differ, even if Foliot supports it."""
    if random := _RANDOM.fullmatch(text):
        notes.append(
            f"{text} is a time that cron chooses anew each time it starts; here it is chosen once, by H"
        )
        return f"H({random[1] or low}-{random[2] or high})"
    for term in text.split(","):
        if not _TERM.fullmatch(term):
            hint = "a step needs a range before it: " if "/" in term else ""
            raise LeftOutError(
                f'"{term}" can\'t be read ({hint}write it as crontab(5) has it, such as 5-59/2)'
            )
    return text


def _split_at_percent(text: str) -> tuple[str, str]:
    """Return the command and its stdin: the text behind the first %, where each further % is a newline."""
    pieces = [""]
    end = 0
    for found in _ESCAPE_OR_PERCENT.finditer(text):
        pieces[-1] += text[end : found.start()]
        end = found.end()
        if found[0] == "%":
            pieces.append("")
        else:
            pieces[-1] += "%" if found[0] == "\\%" else found[0]
    pieces[-1] += text[end:]
    command, *lines = pieces
    stdin = "\n".join(lines)
    return command.strip(), stdin + "\n" if lines and not stdin.endswith("\n") else stdin


def _schedule(
    entry: _Entry, environment: Mapping[str, str], reading: Reading
) -> tuple[dict[str, Any], list[str]]:
    timezone = environment.get("CRON_TZ") or environment.get("TZ") or reading.timezone
    document: dict[str, Any] = {
        "trigger": {"kind": "cron", "expression": entry.expression, "timezone": timezone.removeprefix(":")},
        "target": _target(entry, environment, reading.url),
        **_AS_CRON_DOES,
    }
    delay = environment.get("RANDOM_DELAY", "")
    if delay.isdecimal() and int(delay):
        document["jitter_seconds"] = int(delay) * 60
    return document, [*entry.notes, *_notes(entry, environment, reading)]


def _target(entry: _Entry, environment: Mapping[str, str], url: str | None) -> dict[str, Any]:
    passed = {name: literal(value) for name, value in environment.items() if name not in _FOR_CRON}
    task: dict[str, Any] = {"command": literal(entry.command)}
    if passed:
        task["env"] = passed
    if entry.stdin:
        task["stdin"] = literal(entry.stdin)
    if url is None:
        return {"kind": "function", "name": SHELL_TASK, "args": task}
    return {"kind": "http", "method": "POST", "url": url, "body": task}


def _notes(entry: _Entry, environment: Mapping[str, str], reading: Reading) -> Iterator[str]:
    if entry.user is not None:
        yield f"cron ran it as {entry.user}; now it runs as whoever the worker or agent runs as"
    if entry.stdin:
        yield "what stands behind % is passed to its input, as cron does"
    if environment.get("TZ") and not environment.get("CRON_TZ"):
        yield "TZ is taken as its time zone; some crons only pass it to the command"
    mail = environment.get("MAILTO", "")
    if mail:
        yield f"its output is not mailed to {mail}; it is kept with each execution"
    delay = environment.get("RANDOM_DELAY", "")
    if delay:
        is_known = delay.isdecimal()
        yield f"RANDOM_DELAY={delay} {'becomes jitter_seconds' if is_known else 'is no number of minutes'}"
    for name in environment:
        if _SECRETIVE.search(name) and name not in _FOR_CRON:
            yield f"{name} may be a secret: keep it with `foliot secret set`, and write ${{secret:NAME}} here"
    if reading.url is None and re.search(r"(?<!&)&\s*$", entry.command):
        yield "it leaves something running in the background, which ends with the command here"


# --- names ----------------------------------------------------------------------------------------------

_JOINS = re.compile(r"&&|\|\||[;|]")
_REDIRECTION = re.compile(r"\d*(?:>>?|<)\s*&?\s*\S*|&>>?\s*\S+")
_BEFORE_THE_POINT = frozenset(
    {"cd", "test", "[", "[[", "export", "set", "source", ".", ":", "sleep", "true", "exec"}
)
_SCRIPT_ENDING = re.compile(r"\.(?:sh|bash|py|pl|rb|php|js)$")
_MAX_WORDS = 4
_LONGEST = 60


def name_of(command: str) -> str:
    """Return a readable name for a command: `cd /srv && ./manage.py migrate -v0` is `manage-migrate`."""
    candidates = [_words(part) for part in _JOINS.split(_REDIRECTION.sub(" ", command))]
    words = next((each for each in candidates if each and each[0] not in _BEFORE_THE_POINT), None)
    if words is None:
        words = next((each for each in candidates if each), [])
    named = "-".join(_readable(word) for word in words[:_MAX_WORDS])
    return re.sub(r"-{2,}", "-", named)[:_LONGEST].strip("-.") or "command"


def _words(part: str) -> list[str]:
    words = [word.strip("\"'`(){}!") for word in part.split()]
    # Without options, and without variables set for this command.
    named = [word for word in words if not word.startswith("-") and not re.match(r"\w+=", word)]
    return [last for word in named if (last := word.rstrip("/").rpartition("/")[2])]


def _readable(word: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", _SCRIPT_ENDING.sub("", word)).strip("-").lower()
