"""Read the readiness of a process on this machine."""

import asyncio
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException

LIMIT_S = 10.0
MAX_BYTES = 64 * 1024
"""Maximum size of a response. A longer one is not from Foliot."""
_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound


@dataclass(frozen=True, slots=True)
class ProbeReport:
    url: str
    problems: list[str] | None
    """Empty: ready. None: no response, or not from Foliot."""


async def ask_readiness(host: str, port: int) -> ProbeReport:
    """Call `/readyz` at an address on which a process was configured to listen."""
    name = _HERE.get(host, host)
    return await ask_readiness_at(f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}")


async def ask_readiness_at(address: str) -> ProbeReport:
    url = f"{address}/readyz"
    return ProbeReport(url, await asyncio.to_thread(_ask, url))


def _ask(url: str) -> list[str] | None:
    # Ignore proxy settings of the environment: the process is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        try:
            with opener.open(url, timeout=LIMIT_S) as answer:
                content = answer.read(MAX_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                content = error.read(MAX_BYTES)
        problems = json.loads(content)["problems"]
    # A server that does not speak HTTP, such as a database, causes an HTTPException.
    except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None
    return [str(each) for each in problems] if isinstance(problems, list) else None
