"""All benchmarks, one after another: `make bench`. Fails when one is below its mark."""

import sys

from bench import api, events, firing, lateness, million, queue, start_delay

below = [
    each.__name__ for each in (firing, events, lateness, million, queue, start_delay, api) if not each.main()
]
if below:
    sys.exit(f"below the mark: {', '.join(below)}")
