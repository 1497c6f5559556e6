"""`If-Match`: refuse a change if the schedule has another version than the client has read."""

import re
from typing import Annotated

from fastapi import Depends, Header

_TAG = re.compile(r'(?:W/)?"(\d{1,18})"')
NEVER = -1
"""No schedule has this version."""


async def _expected_version(
    if_match: Annotated[
        str | None, Header(description="The ETag that was read; another version by now is a 412.")
    ] = None,
) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    # Of several tags, only the highest version can be the current one.
    return max((int(tag) for tag in _TAG.findall(if_match)), default=NEVER)


IfMatch = Annotated[int | None, Depends(_expected_version)]
"""The version that the client expects. None: any version."""
