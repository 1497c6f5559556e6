"""`foliot db`: the database's schema."""

import asyncio
from typing import TYPE_CHECKING

import typer

from foliot.cli.support.options import ChangeOptions, grouped
from foliot.cli.support.output import Output, OutputOption, print_json, print_rows
from foliot.model.error_codes import Exit

if TYPE_CHECKING:
    from foliot.db.migrate import SchemaStatus
    from foliot.instance.settings import Settings

app = typer.Typer(help="Upgrade the database's schema.")


@app.command()
@grouped
def upgrade(*, change: ChangeOptions) -> None:
    """Bring the schema up to date.

    Safe at any time, also from several places at once.
    """
    from foliot.instance.settings import load_settings

    if change.dry_run:
        database, found = asyncio.run(_status(load_settings()))
        pending = ", ".join(found.pending)
        change.is_only_shown(f"apply to the database at {database}: {pending or 'nothing, it is up to date'}")
        return
    database, before = asyncio.run(_upgrade(load_settings()))
    if not before.pending:
        typer.echo(f"the database at {database} is up to date ({before.current})")
        return
    origin = "it was empty" if before.current is None else f"it was at {before.current}"
    typer.echo(f"upgraded the database at {database} to {before.wanted}: {origin}")
    for revision in before.pending:
        typer.echo(f"  applied {revision}")


@app.command()
def status(output: OutputOption = Output.TABLE) -> None:
    """Show whether the schema is up to date.

    Exit 1 if an upgrade is needed.
    """
    from foliot.instance.settings import load_settings

    database, found = asyncio.run(_status(load_settings()))
    if output is Output.JSON:
        print_json(
            {
                "database": database,
                "current": found.current,
                "wanted": found.wanted,
                "pending": list(found.pending),
                "is_usable": found.is_usable,
            }
        )
    else:
        print_rows(
            [
                ("database", database),
                ("current", found.current or "none"),
                ("wanted", found.wanted),
                ("pending", ", ".join(found.pending) or "none"),
            ]
        )
    if not found.is_usable:
        typer.echo("foliot: run `foliot db upgrade`", err=True)
        raise typer.Exit(Exit.FAILED)


async def _upgrade(settings: "Settings") -> tuple[str, "SchemaStatus"]:
    from foliot.cli.process.database import opened
    from foliot.db.migrate import upgrade as upgrade_schema

    async with opened(settings) as store:
        return store.database.url, await upgrade_schema(store.database, shards=settings.shards)


async def _status(settings: "Settings") -> tuple[str, "SchemaStatus"]:
    from foliot.cli.process.database import missing_file, opened
    from foliot.db.migrate import schema_status

    missing = missing_file(settings)
    if missing is not None:
        # Use an empty in-memory database instead of the missing file: a read must not create it.
        settings = settings.model_copy(update={"database_url": "memory"})
    async with opened(settings) as store:
        return missing or store.database.url, await schema_status(store.database)
