"""All benchmarks, one after another: `make bench`. Fails when one is below its mark."""

import sys

from bench import firing, lateness, million

below = [each.__name__ for each in (firing, lateness, million) if not each.main()]
if below:
    sys.exit(f"below the mark: {', '.join(below)}")
