"""Import the tables of django-celery-beat from the database of a Django site.

Access is read-only: a read-only transaction in PostgreSQL, or a SQLite file opened in read-only mode.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, MetaData, Table, inspect, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from foliot.importers.celery_beat import AS_BEAT_DOES, ON_ALL, BeatCall, crontab_timing, on_options, target_of
from foliot.importers.import_result import (
    LONGEST_DESCRIPTION,
    ImportBuilder,
    ImportResult,
    LeftOutError,
    every,
)
from foliot.model.errors import DatabaseUnreachableError, SettingError

_PREFIX = "django_celery_beat_"
_TASKS = "periodictask"
_KINDS = ("interval", "crontab", "clocked", "solar")
_PERIODS = ("days", "hours", "minutes", "seconds", "microseconds")
_SENT_ALONG = ("exchange", "routing_key", "priority", "expire_seconds")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BeatTables:
    """The content of the tables: the tasks, and the schedules they refer to, by kind and id."""

    tasks: Sequence[Row]
    schedules: Mapping[str, Mapping[int, Row]]


async def load(url: str) -> BeatTables:
    """Read the tables of a database: `sqlite:///…` or `postgresql://…`. Raises SettingError."""
    engine = _engine(url)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(_tables)
    except (OSError, SQLAlchemyError) as error:
        origin = getattr(error, "orig", None) or error
        raise DatabaseUnreachableError(f"the tables can't be read: {origin}") from None
    finally:
        await engine.dispose()


def read(
    tables: BeatTables,
    *,
    now: datetime,
    as_function: bool = False,
    timezone: str | None = None,
    prefix: str = "",
) -> ImportResult:
    """Return the schedules in the tables. `timezone`: for crontabs without one, as in old versions."""
    finds = ImportBuilder(now, prefix)
    for row in tables.tasks:
        where = f"periodic task {row['id']}"
        try:
            document, notes = _schedule(row, tables, timezone, as_function)
        except LeftOutError as error:
            finds.leave_out(where, row["name"], str(error))
            continue
        finds.add(row["name"], document, where=where, notes=notes)
    return finds.found((*ON_ALL, "times without an offset are read as UTC, as Django stores them (USE_TZ)"))


def _schedule(
    row: Row, tables: BeatTables, timezone: str | None, as_function: bool
) -> tuple[dict[str, Any], list[str]]:
    if row.get("one_off") and row.get("total_run_count"):
        raise LeftOutError("it was to run once, and has")
    timing = _timing(row, tables, timezone)
    call = BeatCall(row["task"], _json(row, "args", []), _json(row, "kwargs", {}), row.get("queue") or None)
    target, notes = target_of(call, as_function)
    document: dict[str, Any] = {**timing, **target, **AS_BEAT_DOES}
    is_once = timing["trigger"]["kind"] == "once"
    description = (row.get("description") or "").strip()
    if description:
        document["description"] = description[:LONGEST_DESCRIPTION]
    if not row["enabled"]:
        document["active"] = False
    if row.get("one_off") and not is_once:
        document["max_runs"] = 1
    for column, name in (("start_time", "start_ts"), ("expires", "end_ts")):
        if row.get(column) is not None:
            document[name] = _instant(row[column]).isoformat()
    if is_once:
        document.pop("start_ts", None)
    sent_along = {name: row[name] for name in _SENT_ALONG if row.get(name) not in (None, "")}
    headers = _json(row, "headers", {})
    return document, [*notes, *on_options({**sent_along, "headers": headers})]


def _timing(row: Row, tables: BeatTables, timezone: str | None) -> dict[str, Any]:
    kinds = [kind for kind in _KINDS if row.get(f"{kind}_id") is not None]
    if len(kinds) != 1:
        raise LeftOutError("it has no schedule" if not kinds else f"it has {' and '.join(kinds)}")
    kind = kinds[0]
    schedule = tables.schedules.get(kind, {}).get(row[f"{kind}_id"])
    if schedule is None:
        raise LeftOutError(f"its {kind} {row[f'{kind}_id']} is not there")
    match kind:
        case "interval":
            if schedule["period"] not in _PERIODS:
                raise LeftOutError(f"a period of {schedule['period']} is not known")
            return {"trigger": every(timedelta(**{schedule["period"]: schedule["every"]}))}
        case "crontab":
            return crontab_timing(schedule, schedule.get("timezone") or timezone)
        case "clocked":
            return {"trigger": {"kind": "once", "at": _instant(schedule["clocked_time"]).isoformat()}}
        case _:
            raise LeftOutError(f"it follows the sun ({schedule['event']}), and there is no such trigger")


def _instant(value: datetime) -> datetime:
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _json(row: Row, column: str, default: Any) -> Any:
    text = row.get(column)
    if not text:
        return default
    try:
        read_value = json.loads(text)
    except (ValueError, RecursionError):
        raise LeftOutError(f"its {column} are not JSON") from None
    if type(read_value) is not type(default):
        raise LeftOutError(f"its {column} are {text}, not a {'list' if default == [] else 'JSON object'}")
    return read_value


# --- the database ---------------------------------------------------------------------------------------


def _engine(text: str) -> AsyncEngine:
    try:
        url = make_url(text)
    except ArgumentError:
        raise _wrong("can't be read") from None
    match url.drivername:
        case "sqlite":  # names: the database of Django, not ours
            return create_async_engine(_read_only_file(url))
        case "postgresql" | "postgres":  # names: the database of Django, not ours
            # Enforced by the server: no statement can write.
            only_reads = {"server_settings": {"default_transaction_read_only": "on"}}
            return create_async_engine(
                url.set(drivername="postgresql+asyncpg"),
                connect_args=only_reads,
                isolation_level="REPEATABLE READ",
            )
        case other:
            raise _wrong(f"is of {other}, which can't be read")


def _read_only_file(url: URL) -> URL:
    path = Path(url.database or "")
    if not path.is_file():
        raise _wrong(f"names {path}, and there is no such file")
    # A file: URI allows read-only mode. Opening a path could write, and would create a missing file.
    return URL.create(
        "sqlite+aiosqlite", database=path.resolve().as_uri(), query={"mode": "ro", "uri": "true"}
    )


def _wrong(why: str) -> SettingError:
    return SettingError(f"--database {why}; give sqlite:///file or postgresql://user:password@host/database")


def _tables(connection: Connection) -> BeatTables:
    known = set(inspect(connection).get_table_names())
    if _PREFIX + _TASKS not in known:
        raise SettingError(f"--database has no table {_PREFIX}{_TASKS}: is it the one of the Django site?")
    schedules = {
        kind: {row["id"]: row for row in _rows(connection, f"{kind}schedule")}
        for kind in _KINDS
        if f"{_PREFIX}{kind}schedule" in known
    }
    return BeatTables(_rows(connection, _TASKS), schedules)


def _rows(connection: Connection, name: str) -> list[Row]:
    # Columns are reflected, because they differ between versions.
    table = Table(_PREFIX + name, MetaData(), autoload_with=connection, resolve_fks=False)
    return [dict(row) for row in connection.execute(select(table).order_by(table.c.id)).mappings()]
