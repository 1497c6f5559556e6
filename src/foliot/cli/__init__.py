"""The command `foliot`: one file per group of commands.

Commands are thin: they read options, call the code that does the work, and show the result. Data goes to
stdout, messages to stderr. Commands import the engine when they run, so that `--help` is quick.
"""

from foliot.cli.app import main

__all__ = ["main"]
