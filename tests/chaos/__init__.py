"""Real clusters under seeded faults, and a verdict that knows when it proves nothing."""
