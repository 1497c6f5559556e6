"""The checks of `foliot doctor`. A check is a function that returns its result; none raises."""

import importlib.metadata
import os
import zoneinfo
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.secrets_sql import ReadableSecrets, Secrets
from foliot.cli.process.database import missing_file, opened
from foliot.cli.process.operator_key import running_file
from foliot.cli.process.process_check import ProbeReport, ask_readiness, ask_readiness_at
from foliot.cli.support.private_file import NotPrivateError
from foliot.cli.support.server_choice import running_at
from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.migrate import schema_status
from foliot.db.opening import READ_SETTING, parse_url
from foliot.db.postgres import open_postgres
from foliot.db.primary import REPLICA, refusal_of
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.instance.settings import Settings, load_settings
from foliot.instance.store import SqlStore
from foliot.model.errors import FoliotError
from foliot.outbox.readers_sql import GroupRecord, ReaderState, RelayRecord
from foliot.queries.overview import Overdue
from foliot.queries.unknown_tasks import UnknownTask
from foliot.queries.unserved_queues import UnservedQueue
from foliot.timing.clock import Clock

MAX_SKEW_S = 1.0
OLDEST_POSTGRES = 13
MAX_NAMED = 5


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: str
    level: Level
    detail: str
    advice: str = ""
    """What to do. Empty: nothing."""


def ok(check: str, detail: str) -> CheckResult:
    return CheckResult(check, Level.OK, detail)


def warn(check: str, detail: str, advice: str) -> CheckResult:
    return CheckResult(check, Level.WARN, detail, advice)


def fail(check: str, detail: str, advice: str) -> CheckResult:
    return CheckResult(check, Level.FAIL, detail, advice)


async def examine(clock: Clock) -> AsyncIterator[CheckResult]:
    """Run all checks in order. Without a database, those that need one are left out."""
    zones = check_zones(zoneinfo.available_timezones())
    try:
        settings = load_settings()
        settings.traces_url  # noqa: B018 - of variables that are not Foliot's own, and raises as these do
    except FoliotError as error:
        yield fail("settings", str(error), "correct it in the environment or in foliot.toml")
        yield zones
        return
    yield ok("settings", "all valid")
    has_database = True
    async for finding in _check_store(settings, lambda store: _examine_state(store, settings, clock)):
        has_database = has_database and (finding.check, finding.level) != ("database", Level.FAIL)
        yield finding
    if settings.secrets_dir is not None:
        yield check_secret_files(settings.secrets_dir)
    yield zones
    async for finding in examine_processes(settings):
        yield finding
    if has_database:
        async for finding in _check_store(settings, _examine_server):
            yield finding


async def examine_processes(settings: Settings) -> AsyncIterator[CheckResult]:
    """Check the `foliot up` of this folder, and the role that serves metrics at the configured address."""
    file = running_file(settings.database_url)
    try:
        up = running_at(file)
    except NotPrivateError as error:
        up = None
        yield warn("process", f"{file} is not used: {error}", "commands need FOLIOT_URL and FOLIOT_KEY")
    if up is not None:
        yield _readiness(await ask_readiness_at(up), "see its log")
    if settings.metrics_port:
        finding = await check_process(settings.metrics_host, settings.metrics_port)
        # `foliot up` serves metrics with the API and does not use this port.
        if up is None or finding.level is not Level.WARN:
            yield finding


async def check_process(host: str, port: int) -> CheckResult:
    """Return the readiness of the process that serves metrics at this address."""
    return _readiness(await ask_readiness(host, port), "start a role with this --metrics-port")


def _readiness(report: ProbeReport, advice: str) -> CheckResult:
    if report.problems is None:
        return warn("process", f"{report.url} does not answer", advice)
    if report.problems:
        return fail("process", f"{report.url} is not ready: {'; '.join(report.problems)}", "see its log")
    return ok("process", f"{report.url} is ready")


async def _check_store(
    settings: Settings, examine_store: Callable[[SqlStore], AsyncIterator[CheckResult]]
) -> AsyncIterator[CheckResult]:
    missing = missing_file(settings)
    if missing is not None:
        yield fail("database", f"there is no file {missing}", "`foliot db upgrade` or `foliot up` makes it")
        return
    async with opened(settings) as store:
        try:
            async for finding in examine_store(store):
                yield finding
        except FoliotError as error:
            yield fail("database", str(error), "")
        except Exception as error:
            # Not a database, missing privilege …: the operator needs the database's own message.
            said = str(getattr(error, "orig", None) or error).splitlines()
            yield fail("database", f"{store.database.url}: {said[0] if said else type(error).__name__}", "")


async def _examine_state(store: SqlStore, settings: Settings, clock: Clock) -> AsyncIterator[CheckResult]:
    yield await _check_writable(store.database)
    schema = await _check_schema(store.database)
    yield schema
    yield await _check_clock(store.database, clock)
    if schema.level is not Level.FAIL:
        locks = await _check_locks(store, settings)
        yield locks
        overdue = await store.overviews.overdue_anywhere(ttl_s=settings.lease_ttl_seconds)
        yield check_overdue(overdue, await store.now(), is_led=locks.level is Level.OK)
        yield check_tasks(await store.overviews.unknown_tasks_anywhere())
        yield check_queues(await store.overviews.unserved_queues_anywhere())
        yield check_events(await store.event_admin.groups(), await store.event_admin.relays())
        standing = await Secrets(store.database, settings.cipher).standing()
        yield check_secrets(standing, has_key=settings.cipher is not None)
    if settings.database_read_url is not None:
        yield await _check_replica(settings.database_read_url, settings)


async def _check_writable(database: Database) -> CheckResult:
    refusal = await refusal_of(database)
    if refusal is not None:
        return fail("database", f"{database.url} {refusal.what}", refusal.advice)
    if database.dialect.is_embedded:
        await database.write(Pool.API, _nothing)
    return ok("database", f"{database.url} is reachable and takes writes")


async def _nothing(_connection: AsyncConnection) -> None:
    """Do nothing. Even a transaction without writes needs the right to write."""


async def _check_replica(url: str, settings: Settings) -> CheckResult:
    database = open_postgres(
        parse_url(url, READ_SETTING),
        sizes={Pool.API: 1},
        ttl_s=settings.lease_ttl_seconds,
        uses_hints=settings.uses_hints,
        setting=READ_SETTING,
    )
    try:
        refusal = await refusal_of(database)
    except FoliotError as error:
        return warn("replica", str(error), "the primary serves all reads meanwhile")
    finally:
        await database.close()
    if refusal is not REPLICA:
        advice = "it is read from, but its replication lag is not known"
        return warn("replica", f"{database.url} is no streaming replica", advice)
    return ok("replica", f"{database.url} is reachable")


async def _check_schema(database: Database) -> CheckResult:
    status = await schema_status(database)
    if status.is_usable:
        newer = "" if status.current == status.wanted else f", newer than this version's {status.wanted}"
        return ok("schema", f"at {status.current}{newer}")
    current = "none yet" if status.current is None else f"at {status.current}"
    return fail("schema", f"{current}, this version needs {status.wanted}", "run `foliot db upgrade`")


async def _check_clock(database: Database, clock: Clock) -> CheckResult:
    if database.dialect.is_embedded:
        return ok("clock", "SQLite uses this machine's own")
    await database.now(Pool.API)  # connects, so that the measurement itself is short
    before = clock.now()
    database_now = await database.now(Pool.API)
    return check_skew(before, database_now, clock.now())


def check_skew(before: datetime, database_now: datetime, after: datetime) -> CheckResult:
    """Compare clocks, given this machine's time before and after reading the database's time."""
    skew_s = (before + (after - before) / 2 - database_now).total_seconds()
    error_s = (after - before).total_seconds() / 2
    direction = "ahead of" if skew_s > 0 else "behind"
    detail = f"this machine is {abs(skew_s):.3f} s {direction} the database (± {error_s:.3f} s)"
    if abs(skew_s) - error_s > MAX_SKEW_S:
        advice = "nothing fires wrongly, since the database's clock decides; let NTP set both machines"
        return warn("clock", detail, advice)
    return ok("clock", detail)


async def _check_locks(store: SqlStore, settings: Settings) -> CheckResult:
    shards = await store.leases.shard_count()
    async with store.database.read(Pool.API) as connection:
        statement = select(
            scheduler_lock_t.c.instance_id,
            scheduler_lock_t.c.last_heartbeat,
            store.database.dialect.now().label("store_now"),
        ).order_by(scheduler_lock_t.c.lock_id)
        rows = [tuple(row) for row in await connection.execute(statement)]
    return check_locks(rows, shards, timedelta(seconds=settings.lease_ttl_seconds))


def check_locks(rows: Sequence[tuple[str, datetime, datetime]], shards: int, ttl: timedelta) -> CheckResult:
    """Check the lock rows (leader, last heartbeat, now). There must be one for each shard."""
    if len(rows) != shards:
        advice = "rows of scheduler_lock_t were changed by hand; restore them"
        return fail("locks", f"{len(rows)} lock rows for {shards} shards", advice)
    lines = []
    for number, (leader, heartbeat, now) in enumerate(rows):
        age = f"heartbeat {(now - heartbeat).total_seconds():.1f} s ago"
        lease = "" if now - heartbeat <= ttl else ", its lease has run out"
        lines.append(f"shard {number}: " + (f"led by {leader}, {age}{lease}" if leader else "no leader"))
    detail = "; ".join(lines)
    if all(leader and now - heartbeat <= ttl for leader, heartbeat, now in rows):
        return ok("locks", detail)
    return warn("locks", detail, "nothing fires there: start `foliot up` or `foliot scheduler`")


def check_overdue(overdue: Overdue, now: datetime, *, is_led: bool) -> CheckResult:
    """Check for overdue times: the leader hangs or is too slow, or there is no leader."""
    if overdue.oldest is None:
        return ok("firing", "nothing is overdue")
    at_least = "at least " if overdue.is_capped else ""
    late_s = (now - overdue.oldest.next_run_ts).total_seconds()
    detail = f"{at_least}{overdue.count} overdue, {overdue.oldest.name} for {late_s:.0f} s"
    if not is_led:
        return warn("firing", detail, "they are decided once somebody leads")
    return fail("firing", detail, "see the leader's /readyz and log")


def check_tasks(unknown: Sequence[UnknownTask]) -> CheckResult:
    """Check for task functions that schedules use and no live worker has."""
    if not unknown:
        return ok("tasks", "every schedule's task function is known to a live worker")
    names = ", ".join(f"{each.task} ({each.schedule_name})" for each in unknown)
    advice = "start a worker with --tasks that registers them, or pause the schedules"
    return warn("tasks", f"no live worker knows {names}", advice)


def check_queues(unserved: Sequence[UnservedQueue]) -> CheckResult:
    """Check for queues with waiting work that no live worker serves."""
    if not unserved:
        return ok("queues", "every queue with waiting work is served by a live worker")
    named = ", ".join(f"{each.queue} ({each.waiting} waiting)" for each in unserved)
    advice = "start a worker that serves them: foliot worker --queues NAME, or without --queues for all"
    return warn("queues", f"no live worker serves {named}", advice)


def check_events(groups: Sequence[GroupRecord], relays: Sequence[RelayRecord]) -> CheckResult:
    """Check for readers of the outbox that do not read: an abandoned one prevents pruning of events."""
    wrong = [
        f"group {each.group} is {each.state}, {each.lag} events"
        for each in groups
        if each.state is not ReaderState.OK
    ]
    for relay in relays:
        if relay.state is not ReaderState.OK:
            wrong.append(f"relay {relay.name} is {relay.state}, {relay.lag} events")
        wrong += [f"the broker refuses topic {each.topic} ({each.reason})" for each in relay.refused_topics]
    if not wrong:
        return ok("events", "nobody who reads events is behind")
    more = f" and {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
    advice = "start it, or remove it with `foliot event groups delete` or `foliot event relays delete`"
    return warn("events", "; ".join(wrong[:MAX_NAMED]) + more, advice)


def check_secrets(standing: ReadableSecrets, *, has_key: bool) -> CheckResult:
    """Check that a process with this environment can decrypt the stored secrets."""
    stored = f"{standing.stored} stored"
    if not has_key:
        if not standing.stored:
            return ok("secrets", "none is stored, and FOLIOT_SECRET_KEY is not set")
        advice = "set FOLIOT_SECRET_KEY as it was when they were stored"
        return fail("secrets", f"{stored}, and none can be read: FOLIOT_SECRET_KEY is not set", advice)
    if standing.unreadable:
        named = ", ".join(standing.unreadable[:MAX_NAMED])
        advice = "add the key they were stored under to FOLIOT_SECRET_KEY, behind a comma, or set them anew"
        return fail("secrets", f"{stored}, FOLIOT_SECRET_KEY does not fit {named}", advice)
    if standing.outdated:
        detail = f"{stored}, {standing.outdated} of them under an older key"
        return warn("secrets", detail, "run `foliot secret rotate` before that key is taken away")
    return ok("secrets", f"{stored}, FOLIOT_SECRET_KEY fits all of them")


def check_secret_files(folder: Path) -> CheckResult:
    if not folder.is_dir():
        advice = "mount it, or take the setting away: no secret is found there"
        return fail("secret-files", f"FOLIOT_SECRETS_DIR: there is no folder {folder}", advice)
    if not os.access(folder, os.X_OK):
        return fail("secret-files", f"FOLIOT_SECRETS_DIR: {folder} can't be read", "give its user the right")
    return ok("secret-files", f"{folder} is there")


def check_zones(names: set[str]) -> CheckResult:
    try:
        package = f"package tzdata {importlib.metadata.version('tzdata')}"
    except importlib.metadata.PackageNotFoundError:
        package = "package tzdata is not installed"
    if not names:
        return fail("tzdata", f"no time zones; {package}", "install the package tzdata")
    return ok("tzdata", f"{len(names)} time zones; {package}")


async def _examine_server(store: SqlStore) -> AsyncIterator[CheckResult]:
    async with store.database.read(Pool.API) as connection:
        if store.database.dialect.is_embedded:
            yield check_journal(str((await connection.execute(text("PRAGMA journal_mode"))).scalar_one()))
            return
        names = ("server_version_num", "server_version", "fsync", "synchronous_commit", "full_page_writes")
        for finding in check_postgres(await _settings_of(connection, *names)):
            yield finding


async def _settings_of(connection: AsyncConnection, *names: str) -> dict[str, str]:
    statement = text("SELECT name, current_setting(name) FROM unnest(CAST(:names AS text[])) AS name")
    rows: Any = await connection.execute(statement, {"names": list(names)})
    return dict(tuple(row) for row in rows)


def check_journal(mode: str) -> CheckResult:
    if mode == "wal":
        return ok("journal", "SQLite keeps a write-ahead log")
    advice = "readers and writers wait for each other; put the file on a local disk"
    return warn("journal", f"SQLite's journal mode is {mode}, not wal", advice)


def check_postgres(settings: dict[str, str]) -> list[CheckResult]:
    version = settings["server_version"]
    if int(settings["server_version_num"]) < OLDEST_POSTGRES * 10_000:
        first = fail("server", f"PostgreSQL {version}", f"PostgreSQL {OLDEST_POSTGRES} or newer is needed")
    else:
        first = ok("server", f"PostgreSQL {version}")
    off = [name for name in ("fsync", "synchronous_commit", "full_page_writes") if settings[name] == "off"]
    if off:
        detail = f"{', '.join(off)} off: what was acknowledged may be lost with power"
        return [first, warn("durability", detail, f"turn {', '.join(off)} on")]
    return [first, ok("durability", "commits are flushed to disk")]
