"""Answers: JSON, made once and quickly. What a route declares as its model is for the OpenAPI alone."""

from collections.abc import Mapping
from typing import Any

from fastapi import Response
from pydantic_core import to_json


def answer(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json(document), status, headers, media_type="application/json")


def no_content() -> Response:
    return Response(status_code=204)


def etag_of(version: int) -> str:
    return f'"{version}"'
