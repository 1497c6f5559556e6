"""Benchmarks.

They print ratios within one run: absolute figures depend more on the machine than on the code.
"""
