"""All benchmarks, one after another: `make bench`."""

from bench import firing, lateness, million

for benchmark in (firing, lateness, million):
    benchmark.main()
