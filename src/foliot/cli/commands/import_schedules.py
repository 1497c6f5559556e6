"""`foliot import`: import schedules from other schedulers."""

import contextlib
import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.support.options import ChangeOptions, Connection, grouped
from foliot.cli.support.output import Format, FormatOption, print_json, print_rows, say, write
from foliot.cli.support.prompts import may
from foliot.model.error_codes import Exit
from foliot.model.errors import InvalidError, SettingError
from foliot.timing.clock import SystemClock

if TYPE_CHECKING:
    from foliot.cli.support.import_plan import Import, Step
    from foliot.importers.import_result import ImportResult

app = typer.Typer(help="Import schedules from cron, Celery and APScheduler.")

SYSTEM_CRONTAB = "/etc/crontab"
STDIN = "-"
SHELL_HINT = (
    "commands are run by the task function `shell`, which no worker has by itself: start one with "
    "`--tasks foliot.contrib.shell`, or import with --target http:URL"
)
CELERY_HINT = "--target function makes schedules of task functions instead"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions(ChangeOptions):
    """Options of all imports."""

    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", help="Prefix of every name.", show_default=False)
    ] = ""
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="NAME", help="Source of the imported schedules.", show_default="import-KIND"
        ),
    ] = None
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over schedules of these names that others manage.")
    ] = False
    output: FormatOption = Format.TABLE


TzOption = Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="The time zone of its times.")]


@app.command("crontab")
@grouped
def crontab(
    *,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="A crontab; - is stdin.", show_default=f"`crontab -l`, or {SYSTEM_CRONTAB}"
        ),
    ] = None,
    system: Annotated[
        bool, typer.Option("--system", help="The lines have a user field, as in /etc/crontab.")
    ] = False,
    tz: TzOption = None,
    target: Annotated[
        str,
        typer.Option("--target", metavar="shell|http:URL", help="Target that runs the commands."),
    ] = "shell",
    making: ImportOptions,
    connection: Connection,
) -> None:
    """Take over the lines of a crontab.

    Commands are run by the task function `shell` of `foliot.contrib.shell`, or posted to an agent. Times are
    those of CRON_TZ or TZ in the file, else of --tz, else of this machine.
    """
    from foliot.importers.crontab import Reading, read

    zone = tz or machine_zone()
    if tz is None:
        say(f"times are read in {zone}, the time zone of this machine, where no CRON_TZ says otherwise")
    reading = Reading(
        now=SystemClock().now(),
        timezone=zone,
        is_system=system,
        url=_agent(target),
        prefix=making.prefix,
    )
    found = read(_crontab_text(file, is_system=system), reading)
    _run("crontab", found, making, connection, hint=SHELL_HINT if reading.url is None else "")


@app.command("celery-beat")
@grouped
def celery_beat(
    *,
    name: Annotated[
        str,
        typer.Option(
            "-A", "--app", metavar="MODULE:APP", help="The Celery application; it is imported here."
        ),
    ],
    tz: TzOption = None,
    target: Annotated[
        str, typer.Option("--target", metavar="celery|function", help="Target that runs the tasks.")
    ] = "celery",
    making: ImportOptions,
    connection: Connection,
) -> None:
    """Take over the beat_schedule of a Celery application.

    Its module is imported, as `celery -A` does, with the task modules that it names. Nothing is sent.
    """
    from foliot.importers.celery_beat import read

    as_function = _is_function(target)
    celery = _object(name, "--app", ("app", "celery"))
    if not hasattr(celery, "conf"):
        raise SettingError(f"--app {name} is no Celery application")
    _finish_loading(celery, name)
    found = read(celery, now=SystemClock().now(), as_function=as_function, timezone=tz, prefix=making.prefix)
    _run("celery-beat", found, making, connection, hint="" if as_function else CELERY_HINT)


@app.command("django-celery-beat")
@grouped
def django_celery_beat(
    *,
    database: Annotated[
        str,
        typer.Option(
            "--database", metavar="URL", help="Database of the Django site: sqlite:///file or postgresql://…"
        ),
    ],
    tz: TzOption = None,
    target: Annotated[
        str, typer.Option("--target", metavar="celery|function", help="Target that runs the tasks.")
    ] = "celery",
    making: ImportOptions,
    connection: Connection,
) -> None:
    """Take over the periodic tasks of django-celery-beat.

    Its tables are read from the database; nothing is written to them.
    """
    import asyncio

    from foliot.importers.django_celery_beat import load, read

    as_function = _is_function(target)
    tables = asyncio.run(load(database))
    found = read(tables, now=SystemClock().now(), as_function=as_function, timezone=tz, prefix=making.prefix)
    _run("django-celery-beat", found, making, connection, hint="" if as_function else CELERY_HINT)


@app.command("apscheduler")
@grouped
def apscheduler(
    *,
    name: Annotated[
        str,
        typer.Option(
            "--scheduler", metavar="MODULE:OBJECT", help="The scheduler; its module is imported here."
        ),
    ],
    making: ImportOptions,
    connection: Connection,
) -> None:
    """Take over the jobs that code adds to an APScheduler 3.

    Its module must not start the scheduler when it is imported. Job stores in databases are never read.
    """
    from foliot.importers.apscheduler import read

    scheduler = _object(name, "--scheduler", ("scheduler",))
    if not hasattr(scheduler, "get_jobs"):
        raise SettingError(f"--scheduler {name} is no scheduler of APScheduler 3")
    found = read(scheduler, now=SystemClock().now(), prefix=making.prefix)
    _run("apscheduler", found, making, connection)


# --- sources ------------------------------------------------------------------------------------------------


def _crontab_text(file: str | None, *, is_system: bool) -> str:
    from foliot.cli.support.documents import read_text

    if file is not None or is_system:
        return read_text(file or SYSTEM_CRONTAB)
    try:
        listed = subprocess.run(["crontab", "-l"], capture_output=True, text=True, check=False)  # noqa: S607
    except OSError:
        raise SettingError("there is no program `crontab` here: name the file, or - for stdin") from None
    except UnicodeDecodeError:
        raise SettingError("what `crontab -l` prints is not UTF-8") from None
    if listed.returncode:
        raise SettingError(f"`crontab -l` says: {listed.stderr.strip() or listed.returncode}")
    return listed.stdout


def machine_zone(environment: dict[str, str] | None = None, root: Path = Path("/etc")) -> str:
    """Return the name of this machine's time zone. Raises SettingError if it can't be determined."""
    given = os.environ if environment is None else environment
    if given.get("TZ"):
        return given["TZ"].removeprefix(":")
    local = root / "localtime"
    _, is_known, name = str(local.resolve()).partition("zoneinfo/")
    if is_known:
        return name
    with contextlib.suppress(OSError, UnicodeDecodeError):
        name = (root / "timezone").read_text().strip()
        if name:
            return name
    if not local.exists():
        return "UTC"
    raise SettingError("the name of this machine's time zone is not known: give it by --tz")


def _agent(target: str) -> str | None:
    if target == "shell":
        return None
    kind, _, url = target.partition(":")
    if kind != "http" or not url.startswith(("http://", "https://")):
        raise InvalidError.at("--target", "target", f'"{target}" is none', "shell, or http:https://host/path")
    return url


def _is_function(target: str) -> bool:
    if target not in ("celery", "function"):
        raise InvalidError.at("--target", "target", f'"{target}" is none', "celery or function")
    return target == "function"


def _object(name: str, option: str, usual: Sequence[str]) -> Any:
    """Import the object `module:attribute`. Without an attribute, the usual names are tried."""
    module, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    found: Any = _guarded(lambda: importlib.import_module(module), f"{option} {name}")
    for each in [attribute] if attribute else usual:
        if hasattr(found, each):
            return getattr(found, each)
    wanted = attribute or " or ".join(usual)
    raise SettingError(f"{option} {name}: the module has no {wanted}; name it as {module}:NAME")


def _finish_loading(celery: Any, name: str) -> None:
    """Load all task modules, as beat does at its start: they may add entries to the schedule."""
    loader = getattr(celery, "loader", None)
    for step in (getattr(loader, "import_default_modules", None), getattr(celery, "finalize", None)):
        if callable(step):
            _guarded(step, f"--app {name}")
    # Celery reads its settings on first access.
    _guarded(lambda: celery.conf.beat_schedule, f"--app {name}")


def _guarded(call: Any, what: str) -> Any:
    # Output of the user's code goes to stderr: stdout is for the result.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            return call()
        except (Exception, SystemExit) as error:
            raise SettingError(f"{what} can't be imported: {type(error).__name__}: {error}") from error


# --- import -------------------------------------------------------------------------------------------------


def _run(
    kind: str, found: "ImportResult", making: ImportOptions, connection: Connection, *, hint: str = ""
) -> None:
    from foliot.cli.support.import_plan import Import, talk

    for line in talk(found):
        say(line)
    if making.output is Format.YAML:
        _print_documents(found)
        return
    wanted = Import(found, making.source or f"import-{kind}", making.adopt)
    steps: list[Step] = []
    if found.items:
        with connection.open() as api:
            steps = wanted.plan(api)
            _show_plan(steps, making.output)
            _tell_refusals(steps, hint)
            if not making.dry_run and any(step.is_change for step in steps):
                _ask(steps, making)
                steps = _carry_out(wanted, api, steps)
    _show_result(wanted, steps, making)
    if not all(step.is_made for step in steps):
        raise typer.Exit(Exit.FAILED)


def _print_documents(found: "ImportResult") -> None:
    """Print the schedules as YAML for `schedule apply`, with the notes as comments."""
    from foliot.cli.support.documents import to_yaml
    from foliot.cli.support.text import one_line

    texts = [
        "".join(f"# {one_line(line)}\n" for line in (f"from {item.where}", *item.notes))
        + to_yaml(item.document)
        for item in found.items
    ]
    if texts:
        write("---\n".join(texts).rstrip("\n"))


def _show_plan(steps: "Sequence[Step]", output: Format) -> None:
    from foliot.cli.support.import_plan import HEADERS, row

    if output is Format.TABLE:
        print_rows([row(step) for step in steps], headers=HEADERS)


def _tell_refusals(steps: "Sequence[Step]", hint: str) -> None:
    bad = [step for step in steps if not step.is_made]
    for step in bad:
        said = (step.error or "").replace("adopt would", "--adopt would")
        say(f"foliot: {step.item.name} ({step.item.where}): {step.action}: {said}")
    if hint and any(step.code in ("unknown_task", "unavailable") for step in bad):
        say(f"hint: {hint}")


def _ask(steps: "Sequence[Step]", making: ImportOptions) -> None:
    count = sum(step.is_change for step in steps)
    if not may(f"Make {count} schedule{'s' if count > 1 else ''}?", is_yes=making.yes):
        say("nothing was done")
        raise typer.Exit(Exit.FAILED)


def _carry_out(wanted: "Import", api: Any, planned: "Sequence[Step]") -> "list[Step]":
    from foliot.cli.support.progress import Bar

    done: list[Step] = []
    with Bar("importing", len(planned)) as bar:
        for step in wanted.carry_out(api, planned):
            done.append(step)
            bar.update(len(done))
    _tell_refusals([step for step in done if step.action == "failed"], "")
    say("switch them off where they were, or they run twice")
    return done


def _show_result(wanted: "Import", steps: "Sequence[Step]", making: ImportOptions) -> None:
    from foliot.cli.support.import_plan import summary

    found = wanted.found
    match making.output:
        case Format.JSON:
            print_json(
                {
                    "dry_run": making.dry_run,
                    "source": wanted.source,
                    "items": [step.document() for step in steps],
                    "left_out": [
                        {"where": each.where, "what": each.what, "why": each.why} for each in found.problems
                    ],
                    "notes": list(found.notes),
                }
            )
        case Format.NAME:
            names = [step.item.name for step in steps if step.is_made]
            if names:
                write("\n".join(names))
    said = summary(steps, found, is_done=not making.dry_run)
    say(f"nothing was done: {said}" if making.dry_run else said)
