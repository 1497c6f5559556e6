"""Helpers that check API answers and read whole lists."""

from collections.abc import Iterator
from typing import Any

import httpx2


def made(answer: httpx2.Response, status: int = 201) -> Any:
    """Assert the status of an answer, and return its document."""
    assert answer.status_code == status, answer.text
    return answer.json()


def problem(answer: httpx2.Response, status: int) -> dict[str, Any]:
    """Assert that the answer is an RFC 9457 problem with Foliot's additional fields, and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == status
    assert document["code"]
    assert document["detail"]
    assert document["request_id"] == answer.headers["x-request-id"]
    for each in document.get("errors", ()):
        assert set(each) == {"pointer", "code", "detail", "hint"}
    return document


def pointers(document: dict[str, Any]) -> dict[str, str]:
    """Return the error code by JSON pointer, from a problem document."""
    return {each["pointer"]: each["code"] for each in document.get("errors", ())}


def walk(client: httpx2.Client, path: str, **params: Any) -> Iterator[dict[str, Any]]:
    """Yield every item of a list, page by page."""
    token = ""
    while True:
        document = made(client.get(path, params={**params, "page_token": token}), 200)
        assert set(document) >= {"items", "next_page_token"}
        yield from document["items"]
        token = document["next_page_token"]
        if not token:
            return
