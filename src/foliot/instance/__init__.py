"""A running instance: its settings, what it consists of, how it starts and stops."""
