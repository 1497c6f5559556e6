"""Running an instance with HTTP beside it, as a process of its own.

HTTP starts before the instance and ends after it, so that whoever probes sees it start and drain: alive, and
not ready.
"""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import typer
from pydantic import SecretStr

from foliot.api.credentials import operator_principal
from foliot.api.server import listen, serving, url_of
from foliot.asgi import Serving
from foliot.cli.api_processes import serve_in_processes
from foliot.cli.foreground import log, logged, make_instance, plan_of, run_instance, run_loop
from foliot.cli.operator_key import keep_key, key_file, running_file
from foliot.plan import Plan, Role
from foliot.probing.siblings import Place
from foliot.runtime import Instance
from foliot.sdk import Foliot
from foliot.settings import Settings
from foliot.telemetry import logs


def run_everything(app: Foliot, settings: Settings) -> None:
    """All roles, until SIGTERM or SIGINT."""
    with logged(settings):
        listener = listen(settings.api_host, settings.api_port)
        if settings.admin_key is None:
            key = keep_key(key_file(settings.database_url))
            settings = settings.model_copy(update={"admin_key": SecretStr(key)})
        plan = plan_of(app, settings, frozenset(Role), [logs.LogObserver()], upgrades_schema=True)
        run_loop(lambda: _run_with_http(plan, listener, is_up=True))


def run_api(app: Foliot, settings: Settings) -> None:
    """HTTP alone, on a database whose schema somebody else keeps up to date."""

    def serve(listener: socket.socket, place: Place | None = None) -> None:
        plan = plan_of(app, settings, frozenset({Role.API}), [logs.LogObserver()])
        run_loop(lambda: _run_with_http(plan, listener, place=place))

    with logged(settings):
        if settings.api_processes == 1:
            serve(listen(settings.api_host, settings.api_port))
        else:
            serve_in_processes(settings.api_processes, settings.api_host, settings.api_port, serve)


async def _run_with_http(
    plan: Plan, listener: socket.socket, *, place: Place | None = None, is_up: bool = False
) -> None:
    made = Serving(lambda observers: make_instance(replace(plan, observers=observers)), plan.observers, place)
    instance, url = made.instance, url_of(listener)
    async with (
        made.shared_page.shared() if made.shared_page is not None else nullcontext(),
        serving(made.app, listener, trusted_proxies=plan.settings.trusted_proxies),
    ):
        log().info("listening", url=url, database=instance.store.database.url)
        if not is_up:
            await run_instance(instance)
            return
        with _announced(running_file(plan.settings.database_url), url):
            await run_instance(instance, on_started=lambda: _invite(instance, url))


async def _invite(instance: Instance, url: str) -> None:
    """Print a link that signs one browser in."""
    assert instance.api is not None
    holder = instance.api.authenticator.holder_of(operator_principal())
    token = await instance.store.sessions.make_link(holder)
    typer.echo(f"Foliot is up. Sign in (works once): {url}/sign-in?token={token}")


@contextmanager
def _announced(file: Path, url: str) -> Iterator[None]:
    """Say beside the database where this serves, for commands that are not told."""
    told = json.dumps({"url": url, "pid": os.getpid()})
    try:
        file.write_text(told, encoding="utf-8")
    except OSError as error:
        log().warning("can't say where this serves", file=str(file), error=str(error))
    try:
        yield
    finally:
        with suppress(OSError):
            if file.read_text(encoding="utf-8") == told:  # and not of another that was started since
                file.unlink()
