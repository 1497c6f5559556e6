"""What a worker does with an execution: one file per kind of target, behind one protocol."""
