"""Build JSON responses, serialised once. The response models of routes are only for the OpenAPI document."""

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import Response
from pydantic_core import to_json, to_jsonable_python


def answer(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(_json(document), status, headers, media_type="application/json")


def no_content() -> Response:
    return Response(status_code=204)


def etag_of(version: int) -> str:
    return f'"{version}"'


def _json(document: Any) -> bytes:
    try:
        # Takes a tenth of pydantic's time: this saves 2 ms on a page of 50 schedules.
        return orjson.dumps(document, default=to_jsonable_python, option=orjson.OPT_UTC_Z)
    except TypeError:
        return to_json(document)  # for example an integer of more than 64 bits
