"""Run an instance together with its HTTP server, as a process.

HTTP starts before the instance and ends after it. So probes see the process as alive but not ready while it
starts and drains.
"""

import ipaddress
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import typer
from pydantic import SecretStr

from foliot.access.sessions import LINK_LIFETIME_S
from foliot.api.access.credentials import operator_principal
from foliot.api.http.http_server import listen, serving, url_of
from foliot.cli.process.foreground import log, logged, make_instance, plan_of, run_instance, run_loop
from foliot.cli.process.operator_key import keep_given_key, keep_key, key_file, running_file
from foliot.cli.support.output import is_terminal
from foliot.cli.support.private_file import replace_private
from foliot.cli.support.server_choice import is_loopback
from foliot.instance.runtime import Instance
from foliot.instance.settings import Settings
from foliot.instance.spec import InstanceRole, InstanceSpec
from foliot.model.errors import SettingError
from foliot.sdk.app import Foliot
from foliot.sdk.asgi import Serving
from foliot.telemetry import logs


def run_everything(app: Foliot, settings: Settings) -> None:
    """Run all roles until SIGTERM or SIGINT."""
    with logged(settings):
        listener = listen(settings.api_host, settings.api_port)
        settings = settings.model_copy(update={"admin_key": SecretStr(_operator_key(settings))})
        plan = plan_of(app, settings, frozenset(InstanceRole), [logs.LogObserver()], upgrades_schema=True)
        run_loop(lambda: _run_with_http(plan, listener, is_up=True))


def _operator_key(settings: Settings) -> str:
    file = key_file(settings.database_url)
    if settings.admin_key is None:
        return keep_key(file)
    key = settings.admin_key.get_secret_value()
    try:
        keep_given_key(file, key)
    except SettingError as error:
        log().warning("commands in this folder need FOLIOT_URL and FOLIOT_KEY", error=str(error))
    return key


def run_api(app: Foliot, settings: Settings) -> None:
    """Run only the API. The database schema is not upgraded here."""
    with logged(settings):
        listener = listen(settings.api_host, settings.api_port)
        plan = plan_of(app, settings, frozenset({InstanceRole.API}), [logs.LogObserver()])
        run_loop(lambda: _run_with_http(plan, listener))


async def _run_with_http(plan: InstanceSpec, listener: socket.socket, *, is_up: bool = False) -> None:
    made = Serving(lambda observers: make_instance(replace(plan, observers=observers)), plan.observers)
    instance, url = made.instance, url_of(listener)
    async with serving(made.app, listener, trusted_proxies=plan.settings.trusted_proxies):
        log().info("listening", url=url, database=instance.store.database.url)
        if not is_up:
            await run_instance(instance)
            return
        with _announced(running_file(plan.settings.database_url), url):
            await run_instance(
                instance, on_started=lambda: _invite(instance, url, may_show_link=_may_show_link(listener))
            )


def _may_show_link(listener: socket.socket) -> bool:
    """Whether the sign-in link may be printed to stdout.

    On a terminal, only the user reads it. Otherwise stdout may be a log that many can read, so the link is
    printed only if the server listens on a loopback address.
    """
    return is_terminal(sys.stdout) or ipaddress.ip_address(listener.getsockname()[0]).is_loopback


async def _invite(instance: Instance, url: str, *, may_show_link: bool) -> None:
    """Print a link that signs one browser in, or how to get one."""
    # Commands use the key stored next to the database only for a loopback address.
    is_local = is_loopback(url)
    where = "in this folder" if is_local else f"with FOLIOT_URL={url} and FOLIOT_KEY"
    if not may_show_link:
        typer.echo(f"Foliot is up at {url}. For a sign-in link, run `foliot sign-in` {where}.")
        return
    assert instance.api is not None
    holder = instance.api.authenticator.holder_of(operator_principal())
    token = (await instance.store.sessions.make_link(holder)).token
    minutes = LINK_LIFETIME_S / 60
    typer.echo(
        f"Foliot is up. Sign in (works once, for {minutes:.0f} minutes): {url}/sign-in?token={token}\n"
        f"For another link, run `foliot sign-in` {where}."
    )


@contextmanager
def _announced(file: Path, url: str) -> Iterator[None]:
    """Store the address in a file next to the database, for commands without --url."""
    text = json.dumps({"url": url, "pid": os.getpid()})
    try:
        replace_private(file, text)
    except OSError as error:
        log().warning("can't say where this serves", file=str(file), error=str(error))
    try:
        yield
    finally:
        with suppress(OSError):
            if file.read_text(encoding="utf-8") == text:  # not overwritten by another process
                file.unlink()
