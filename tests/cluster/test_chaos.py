"""A short run of `python -m tests.chaos`: every kind of process killed or stopped, the database crashed."""

from pathlib import Path

import pytest

from tests.chaos.plan import Kind, plan_faults
from tests.chaos.run import Run, carry_out
from tests.chaos.verdict import Outcome
from tests.servers import PostgresServer

pytestmark = pytest.mark.cluster

RUN = Run(seed=7, seconds=20)


async def test_a_cluster_under_faults_decides_every_due_time_once_and_delivers_it(
    postgres_server: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    told: list[str] = []
    verdict = await carry_out(RUN, postgres_server, postgres_url, tmp_path, told.append)
    report = "\n".join([*told, *verdict.lines()])
    if verdict.outcome is Outcome.UNKNOWN:
        # Nothing was wrong, and a fault that should have shown something did not: the run is tried again.
        raise TimeoutError(report)
    assert verdict.outcome is Outcome.VALID, report


def test_the_short_run_has_the_faults_that_matter() -> None:
    kinds = {each.kind for each in plan_faults(RUN.seed, RUN.seconds, ttl_s=2, has_provider=False)}
    assert {Kind.KILL, Kind.STOP, Kind.LOSE_COMMIT, Kind.STALE_WRITE, Kind.CRASH_DATABASE} <= kinds
