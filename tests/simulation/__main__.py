"""Simulation: `--seed 7` prints one history step by step, `--histories 500` runs that many."""

import argparse
import time

from tests.simulation.history import bites, replay_command, tell
from tests.simulation.memory import Memory


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the history, or of the first of many")
    parser.add_argument("--histories", type=int, help="how many to try, one seed after the other")
    options = parser.parse_args()
    memory = Memory()
    try:
        return run(memory, options)
    finally:
        memory.close()


def run(memory: Memory, options: argparse.Namespace) -> int:
    if options.histories is None:
        told = tell(memory, options.seed, print)
        print(dict(told.counts))
        return 1 if told.accusations else 0
    began = time.process_time()
    histories = []
    for seed in range(options.seed, options.seed + options.histories):
        told = tell(memory, seed)
        histories.append(told)
        for accusation in told.accusations[:3]:
            print(f"seed {seed}: {accusation}")
        if told.accusations:
            print(f"    {replay_command(seed)}")
    minutes = (time.process_time() - began) / 60
    wrong = sum(1 for each in histories if each.accusations)
    print(f"{len(histories)} histories, {wrong} wrong, {len(histories) / minutes:.0f} a minute of one core")
    print(dict(sorted(bites(histories).items())))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
