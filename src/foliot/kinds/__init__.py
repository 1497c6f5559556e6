"""Targets: how a worker runs an execution. One file per target kind, behind one protocol."""
