"""Run all benchmarks, one after another: `make bench`. Fails if one misses its target."""

import sys

from bench import (
    api,
    events,
    failover,
    firing,
    lateness,
    million,
    queue,
    shards,
    start_delay,
    telemetry,
    units,
    verify,
)

below = [
    each.__name__
    for each in (
        firing,
        shards,
        failover,
        events,
        lateness,
        million,
        queue,
        start_delay,
        telemetry,
        verify,
        api,
        units,
    )
    if not each.main()
]
if below:
    sys.exit(f"below the mark: {', '.join(below)}")
