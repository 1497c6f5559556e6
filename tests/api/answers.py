"""What answers have to look like, and lists read to their end."""

from collections.abc import Iterator
from typing import Any

import httpx2


def made(answer: httpx2.Response, status: int = 201) -> Any:
    """The document of an answer that has this status."""
    assert answer.status_code == status, answer.text
    return answer.json()


def problem(answer: httpx2.Response, status: int) -> dict[str, Any]:
    """The document of a refusal, which is an RFC 9457 one with what Foliot adds."""
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
    """Where a refusal found what."""
    return {each["pointer"]: each["code"] for each in document.get("errors", ())}


def walk(client: httpx2.Client, path: str, **params: Any) -> Iterator[dict[str, Any]]:
    """Every item of a list, page by page."""
    token = ""
    while True:
        document = made(client.get(path, params={**params, "page_token": token}), 200)
        assert set(document) >= {"items", "next_page_token"}
        yield from document["items"]
        token = document["next_page_token"]
        if not token:
            return
