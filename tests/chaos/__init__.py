"""Chaos tests: a real cluster under seeded faults. The verdict is "unknown" if the faults had no effect."""
