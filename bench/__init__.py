"""Benchmarks. They print ratios within one run: figures alone say more of the machine than of the code."""
