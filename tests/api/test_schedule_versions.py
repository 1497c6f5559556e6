"""Versions of a schedule: ETags that guard changes, and what every change leaves behind."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.api.answers import problem, walk
from tests.api.hosts import yearly

DATABASES = ("sqlite",)

Change = Callable[[httpx2.Client, str, dict[str, str]], httpx2.Response]
CHANGES: dict[str, Change] = {
    "put": lambda client, path, headers: client.put(path, json=yearly(), headers=headers),
    "patch": lambda client, path, headers: client.patch(path, json={"description": "x"}, headers=headers),
    "pause": lambda client, path, headers: client.post(f"{path}/pause", headers=headers),
    "resume": lambda client, path, headers: client.post(f"{path}/resume", headers=headers),
    "restore": lambda client, path, headers: client.post(f"{path}/versions/1/restore", headers=headers),
    "delete": lambda client, path, headers: client.delete(path, headers=headers),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("stale", ['"1"', 'W/"1"', '"0"', '"nonsense"', '"1", "0"', '""', "1"])
def test_a_change_made_for_another_version_is_refused_and_told_the_current_one(
    operator: httpx2.Client, path: str, change: Change, stale: str
) -> None:
    current = operator.patch(path, json={"description": "by somebody else"})
    answer = change(operator, path, {"If-Match": stale})
    document = problem(answer, 412)
    assert document["code"] == "stale_version"
    assert document["current_version"] == current.json()["aggregate_version"]
    assert answer.headers["etag"] == current.headers["etag"]
    assert operator.get(path).json() == current.json()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_made_for_the_current_version_is_made(
    operator: httpx2.Client, path: str, change: Change
) -> None:
    etag = operator.get(path).headers["etag"]
    assert change(operator, path, {"If-Match": etag}).is_success
    assert change(operator, path, {"If-Match": "*"}).status_code in (200, 404)


def test_every_change_is_a_version_with_its_author_and_reason(
    operator: httpx2.Client, schedule: dict[str, Any], path: str
) -> None:
    operator.patch(path, json={"description": "second"}, headers={"X-Foliot-Reason": "typo"})
    operator.post(f"{path}/pause", json={"reason": "moving"})
    operator.post(f"{path}/resume")
    versions = operator.get(f"{path}/versions").json()["items"]
    assert [each["aggregate_version"] for each in versions] == [4, 3, 2, 1]
    assert [each["change"] for each in versions] == ["resumed", "paused", "edited", "created"]
    assert [each["author"] for each in versions] == ["operator"] * 4
    assert [each["reason"] for each in versions][1:3] == ["moving", "typo"]
    second = operator.get(f"{path}/versions/2").json()
    assert second["changes"] == [{"pointer": "/description", "before": "", "after": "second"}]
    assert operator.get(f"{path}/versions/2?against=2").json()["changes"] == []
    assert operator.get(f"{path}/versions/5").status_code == 404
    restored = operator.post(f"{path}/versions/1/restore").json()
    assert (restored["description"], restored["aggregate_version"]) == (schedule["description"], 5)


def test_versions_are_read_a_page_at_a_time(operator: httpx2.Client, path: str) -> None:
    for number in range(6):
        operator.patch(path, json={"description": str(number)})
    assert [each["aggregate_version"] for each in walk(operator, f"{path}/versions", page_size=2)] == [
        7,
        6,
        5,
        4,
        3,
        2,
        1,
    ]
