"""What commands load before they are asked to do anything."""

import subprocess
import sys

HEAVY = ("httpx2", "pydantic", "sqlalchemy", "fastapi", "yaml", "rich", "foliot.instance.settings")


def test_help_and_completion_need_nothing_heavy() -> None:
    code = f"import sys, foliot.cli.app; print([name for name in {HEAVY!r} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
