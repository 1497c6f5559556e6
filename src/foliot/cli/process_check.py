"""Asking a process of this machine whether it can do its work."""

import asyncio
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException

LIMIT_S = 10.0
MAX_BYTES = 64 * 1024
"""Of an answer; whoever says more is somebody else."""
_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound


@dataclass(frozen=True, slots=True)
class ProbeReport:
    url: str
    problems: list[str] | None
    """None: nobody answers, or somebody else."""


async def ask_readiness(host: str, port: int) -> ProbeReport:
    """What `/readyz` says at an address that a process was told to listen on."""
    name = _HERE.get(host, host)
    return await ask_readiness_at(f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}")


async def ask_readiness_at(address: str) -> ProbeReport:
    url = f"{address}/readyz"
    return ProbeReport(url, await asyncio.to_thread(_ask, url))


def _ask(url: str) -> list[str] | None:
    # What the environment says of proxies is not for this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        try:
            with opener.open(url, timeout=LIMIT_S) as answer:
                content = answer.read(MAX_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                content = error.read(MAX_BYTES)
        problems = json.loads(content)["problems"]
    # What does not even speak HTTP, such as a database, is an HTTPException.
    except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None
    return [str(each) for each in problems] if isinstance(problems, list) else None
