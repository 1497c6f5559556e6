"""Writes openapi.json beside this file: what the server says of itself, from which the UI's types are made.

Run it with the project's Python when the API has changed. A test compares the two.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from foliot.instance.runtime import Instance
from foliot.instance.settings import Settings
from foliot.instance.spec import InstanceRole, InstanceSpec
from foliot.sdk.asgi import Serving

FILE = Path(__file__).parent / "openapi.json"


def document() -> dict[str, Any]:
    """What GET /openapi.json answers; nothing is started, and no database is touched."""
    plan = InstanceSpec(
        settings=Settings(database_url="sqlite:///never-opened.db", admin_key="0" * 32),
        roles=frozenset({InstanceRole.API}),
    )
    made: dict[str, Any] = Serving(
        lambda observers: Instance(replace(plan, observers=observers))
    ).app.openapi()
    return made


if __name__ == "__main__":
    FILE.write_text(json.dumps(document(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
