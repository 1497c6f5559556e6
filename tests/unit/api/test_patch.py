"""Merge patches, and what is particular about definitions of schedules."""

from typing import Any

import pytest

from foliot.api.http.patch import merge, merge_definition

CRON = {"kind": "cron", "expression": "0 2 * * *", "timezone": "Europe/Berlin"}
EVERY = {"kind": "interval", "frequency_unit": "MINUTES", "frequency_time": 5, "timezone": "UTC"}


@pytest.mark.parametrize(
    ("document", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_patch_is_merged_as_rfc_7396_says(
    document: dict[str, Any], patch: dict[str, Any], merged: dict[str, Any]
) -> None:
    assert merge(document, patch) == merged


def test_a_part_of_a_trigger_is_changed_and_the_rest_stays() -> None:
    merged = merge_definition({"trigger": CRON}, {"trigger": {"expression": "0 3 * * *"}})
    assert merged["trigger"] == {**CRON, "expression": "0 3 * * *"}


def test_a_trigger_of_another_kind_replaces_the_old_one_whole() -> None:
    merged = merge_definition({"trigger": CRON}, {"trigger": {"kind": "interval", "minutes": 5}})
    assert merged["trigger"] == {"kind": "interval", "minutes": 5}


def test_a_target_of_another_kind_replaces_the_old_one_whole() -> None:
    old = {"kind": "http", "url": "https://agent.example/", "method": "POST"}
    merged = merge_definition({"target": old}, {"target": {"kind": "function", "name": "clean"}})
    assert merged["target"] == {"kind": "function", "name": "clean"}


@pytest.mark.parametrize(
    ("old", "patch", "merged"),
    [
        (EVERY, {"minutes": 10}, {"kind": "interval", "timezone": "UTC", "minutes": 10}),
        (
            CRON,
            {"fields": {"hour": "3"}},
            {"kind": "cron", "timezone": "Europe/Berlin", "fields": {"hour": "3"}},
        ),
        ({"kind": "delay", "seconds": 30}, {"seconds": 60}, {"kind": "delay", "seconds": 60}),
    ],
)
def test_another_way_to_say_the_same_takes_the_place_of_what_it_says(
    old: dict[str, Any], patch: dict[str, Any], merged: dict[str, Any]
) -> None:
    assert merge_definition({"trigger": old}, {"trigger": patch})["trigger"] == merged
