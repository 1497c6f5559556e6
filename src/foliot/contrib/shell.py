"""The task function `shell`: runs a command, like cron. Enable it with `--tasks foliot.contrib.shell`.

Security: anyone who may edit a schedule, or trigger one with their own arguments, can then run any command as
the worker's user. Such a command can read this user's files, reach its network, and inspect the worker
process and its environment. This applies to every host (tenant) that the worker serves. So use a separate
worker with a separate queue, running as a user with few rights. Do not use it where hosts don't trust each
other.

A command gets a small environment, not the worker's: Foliot's settings and keys are not passed on. Put
secrets into `env` as ${secret:name}, not into the command, which all users of the machine can see.
"""

import os
import pwd
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from foliot import Foliot
from foliot.kinds.target_protocol import AttemptFailedError

SHELL = "/bin/sh"
PATH = "/usr/local/bin:/usr/bin:/bin"

app = Foliot()


# In its own process: its output becomes the execution's log, line by line and limited in size. A timeout or
# cancel ends the whole process group, with everything that the command has started.
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
    """Return a command's environment: cron's few variables, TRACEPARENT, and those of the schedule."""
    try:
        user = pwd.getpwuid(os.getuid())
        name, home = user.pw_name, user.pw_dir
    except KeyError:  # a container may run as a user id without a name
        name, home = str(os.getuid()), "/"
    traced = {key: os.environ[key] for key in ("TRACEPARENT",) if key in os.environ}
    return {"HOME": home, "LOGNAME": name, "USER": name, "SHELL": SHELL, "PATH": PATH, **traced, **given}


def _home(environment: Mapping[str, str]) -> str:
    """Return the home directory, or / if it does not exist, as is common for service users."""
    return environment["HOME"] if Path(environment["HOME"]).is_dir() else "/"


def _ending(code: int) -> str:
    if code > 0:
        return f"the command ended with exit code {code}"
    try:
        return f"the command was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"the command was ended by signal {-code}"
