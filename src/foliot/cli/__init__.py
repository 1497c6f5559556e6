"""The command `foliot`: one file per group of commands.

Commands are thin: they read options, call what does the work, and show the result. Data goes to stdout, talk
to stderr. What they need of the engine they import when they run, so that `--help` is quick.
"""

from foliot.cli.app import main

__all__ = ["main"]
