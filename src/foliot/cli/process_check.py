"""Asking a process of this machine whether it can do its work."""

import asyncio
import json
import urllib.error
import urllib.request
from dataclasses import dataclass

LIMIT_S = 10.0
_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound


@dataclass(frozen=True, slots=True)
class Told:
    url: str
    problems: list[str] | None
    """None: nobody answers, or somebody else."""


async def ask_readiness(host: str, port: int) -> Told:
    """What `/readyz` says at an address that a process was told to listen on."""
    name = _HERE.get(host, host)
    url = f"http://[{name}]:{port}/readyz" if ":" in name else f"http://{name}:{port}/readyz"
    return Told(url, await asyncio.to_thread(_ask, url))


def _ask(url: str) -> list[str] | None:
    # What the environment says of proxies is not for this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        try:
            with opener.open(url, timeout=LIMIT_S) as answer:
                document = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                document = json.load(error)
        return [str(each) for each in document["problems"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
