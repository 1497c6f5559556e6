"""Runs when a wheel or a source distribution is built: the user interface is in it, or there is none."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MISSING = (
    "The user interface is not built, and a distribution without it is not made. "
    "Install Node 20.19 or newer and run `make dist`; `pip install -e .` works without it."
)


class UserInterface(BuildHookInterface):  # type: ignore[type-arg]
    """Brings src/foliot/web_dist up to date, or ends the build with a message."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if version == "editable":
            return
        root = Path(self.root)
        is_source_distribution = (root / "PKG-INFO").exists()
        if not is_source_distribution and shutil.which("npm") and (root / "web").is_dir():
            built = subprocess.run([str(root / "scripts" / "build-web")], cwd=root, check=False)  # noqa: S603
            if built.returncode:
                self.app.abort("The user interface could not be built; web/build.log says why.")
            if (root / "src" / "foliot" / "web_dist.building").exists():
                self.app.abort("Another build of the user interface is running; try again when it has ended.")
        built_files = [
            root / "src" / "foliot" / "web_dist" / name for name in ("index.html", "THIRD_PARTY_LICENSES.txt")
        ]
        if not all(file.is_file() for file in built_files):
            self.app.abort(MISSING)
