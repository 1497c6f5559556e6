"""The task function `shell`: runs a command, as cron does. Opt in with `--tasks foliot.contrib.shell`.

Know what this means before you do. Whoever may edit a schedule, and whoever may trigger one with arguments of
their own, can then run any command as the user that the worker runs as: read its files, reach its network,
and, since they are the same user's, look at the worker and what its environment holds. That goes for every
host (tenant) that the worker serves. So give it a worker of its own, as a user that may do little, with a
queue of its own; leave it out where hosts don't trust each other.

A command gets a small environment, not the worker's: settings and keys of Foliot are not passed on. Secrets
are better written into `env` as ${secret:name} than into the command, which all users of the machine can see.
"""

import os
import pwd
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from foliot import Foliot
from foliot.target.protocol import AttemptFailedError

SHELL = "/bin/sh"
PATH = "/usr/local/bin:/usr/bin:/bin"

app = Foliot()


# A process of its own: what the command prints becomes its log, line by line and capped, and a timeout or a
# cancel ends the whole process group, with all that the command has started.
@app.task(isolation="process", display_name="Shell command")
def shell(
    command: str, env: dict[str, str] | None = None, stdin: str = "", directory: str | None = None
) -> int:
    """Runs a command with a shell on the worker; fails if its exit code is not 0.

    The shell is that of SHELL in `env`, else /bin/sh; it starts in `directory`, else in the home directory.
    """
    environment = environment_of(env or {})
    folder = directory or _home(environment)
    try:
        ended = subprocess.run(  # noqa: S603 - to run what it is given is what this is for
            [environment["SHELL"], "-c", command],
            env=environment,
            cwd=folder,
            input=stdin.encode(),
            check=False,
        )
    except FileNotFoundError:
        missing = folder if not Path(folder).is_dir() else environment["SHELL"]
        raise AttemptFailedError(f"there is no {missing} on this worker", is_permanent=True) from None
    except OSError as error:
        raise AttemptFailedError(
            f"the command can't be started: {error.strerror}", is_permanent=True
        ) from None
    if ended.returncode:
        raise AttemptFailedError(_ending(ended.returncode))
    return 0


def environment_of(given: Mapping[str, str]) -> dict[str, str]:
    """What a command sees: as little as cron passes on, the trace, and what the schedule gives."""
    try:
        user = pwd.getpwuid(os.getuid())
        name, home = user.pw_name, user.pw_dir
    except KeyError:  # a container may run as a number that nobody has given a name
        name, home = str(os.getuid()), "/"
    traced = {key: os.environ[key] for key in ("TRACEPARENT",) if key in os.environ}
    return {"HOME": home, "LOGNAME": name, "USER": name, "SHELL": SHELL, "PATH": PATH, **traced, **given}


def _home(environment: Mapping[str, str]) -> str:
    """Where a command starts; users that only services run as often have no folder."""
    return environment["HOME"] if Path(environment["HOME"]).is_dir() else "/"


def _ending(code: int) -> str:
    if code > 0:
        return f"the command ended with exit code {code}"
    try:
        return f"the command was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"the command was ended by signal {-code}"
