"""Kinds of target: how a worker runs an execution. One file per kind, behind `target_protocol.py`."""
