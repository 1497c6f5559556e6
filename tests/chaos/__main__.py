"""`python -m tests.chaos`: run a cluster under random faults and check its guarantees.

Exit status 0: valid. 1: invalid. 2: unknown, because the faults had no effect. A seed always gives the same
plan.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.brokers import RedisBroker
from tests.chaos.cluster import Provider
from tests.chaos.run import Run, carry_out
from tests.chaos.verdict import Outcome
from tests.etcd import EtcdCluster
from tests.servers import PostgresServer

EXITS = {Outcome.VALID: 0, Outcome.INVALID: 1, Outcome.UNKNOWN: 2}


@contextmanager
def _provider(name: str) -> Iterator[Provider | None]:
    if name == "database":
        yield None
        return
    found = EtcdCluster() if name == "etcd" else RedisBroker()
    try:
        yield found
    finally:
        found.remove()


@contextmanager
def _server() -> Iterator[PostgresServer]:
    # The guarantees hold with durable defaults, so test with them.
    server = PostgresServer(is_durable=True)
    try:
        yield server
    finally:
        server.remove()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long faults go on")
    parser.add_argument("--seed", type=int, default=None, help="of the plan; left out: a new one")
    parser.add_argument("--provider", choices=("database", "etcd", "redis"), default="database")
    options = parser.parse_args()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}, {options.seconds:g} s, lease provider {options.provider}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="foliot-chaos-"))
    began = time.monotonic()
    with _server() as server, _provider(options.provider) as provider:
        run = Run(seed, options.seconds, provider)
        verdict = asyncio.run(
            carry_out(run, server, server.url("postgres"), folder, lambda line: print(line, flush=True))
        )
    print("\n".join(verdict.lines()))
    print(f"took {time.monotonic() - began:.0f} s; logs in {folder}")
    return EXITS[verdict.outcome]


if __name__ == "__main__":
    sys.exit(main())
