"""Random histories of the engine, by seed. A failure names the command that tells its history again.

FOLIOT_SIMULATION_HISTORIES says how many to try, FOLIOT_SIMULATION_SEED from which seed on.
"""

import os

from tests.simulation.history import bites, replay_command, tell
from tests.simulation.memory import Memory

HISTORIES = int(os.environ.get("FOLIOT_SIMULATION_HISTORIES", "40"))
FIRST_SEED = int(os.environ.get("FOLIOT_SIMULATION_SEED", "1"))
MUST_BITE = (
    "leader changes",
    "rejected stale writes",
    "unknown commits",
    "rescues",
    "crashes",
    "due times",
)
"""Without any of these the histories have shown nothing."""


def test_whatever_happens_every_due_time_is_decided_once_and_nothing_stale_is_written(memory: Memory) -> None:
    histories = [tell(memory, seed) for seed in range(FIRST_SEED, FIRST_SEED + HISTORIES)]
    wrong = [
        f"{replay_command(told.seed)}   # {accusation}"
        for told in histories
        for accusation in told.accusations
    ]
    assert not wrong, "\n".join(wrong)
    counts = bites(histories)
    counts["rejected stale writes"] = counts["rejected writes of leaders"] + counts["rejected settles"]
    assert not [name for name in MUST_BITE if not counts[name]], f"unknown, not valid: {dict(counts)}"


def test_a_seed_tells_the_same_history_again(memory: Memory) -> None:
    first, again = tell(memory, FIRST_SEED), tell(memory, FIRST_SEED)
    assert len(first.lines) > 20
    assert again.lines == first.lines
    assert tell(memory, FIRST_SEED + 1).lines != first.lines
