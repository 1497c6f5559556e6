"""The OpenAPI document: whole, sound, and true enough to make clients of."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator

from foliot.api.access.access_table import ACCESS, Open
from tests.api.hosts import Host, unique
from tests.api.served import API_ALONE, V1, Served, served
from tests.api.valid_requests import ROUTES, VALID, Ask, send

UNDESCRIBED = {("GET", "/openapi.json"), ("GET", "/"), *(route for route in ROUTES if route[0] == "HEAD")}
"""The document itself, the page, and what is the same without a body."""
DATABASES = ("sqlite",)
SERVER = {"roles": API_ALONE}


@pytest.fixture(scope="module")
def document(server: Served) -> dict[str, Any]:
    answer = server.by(None).get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def test_it_describes_every_route_and_no_other(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    described = {(method, path) for method, path, _ in operations(document)}
    assert described == set(ACCESS) - UNDESCRIBED


def test_every_reference_in_it_leads_somewhere(document: dict[str, Any]) -> None:
    for reference in references(document):
        place = document
        for part in reference.removeprefix("#/").split("/"):
            assert part in place, reference
            place = place[part]


def test_every_schema_in_it_is_a_schema(document: dict[str, Any]) -> None:
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_every_operation_has_a_name_of_its_own_and_a_word_on_what_it_does(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names))
    for _, _, operation in operations(document):
        assert operation["summary"]
        assert operation["tags"]


def test_it_says_which_credentials_a_route_takes(document: dict[str, Any]) -> None:
    schemes = set(document["components"]["securitySchemes"])
    for method, path, operation in operations(document):
        is_open = ACCESS[method, path] in (Open.ANYBODY, Open.PROBE, Open.AGENT)
        assert ("security" not in operation) is is_open
        assert {name for each in operation.get("security", []) for name in each} <= schemes


def test_it_says_how_every_route_refuses(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        if ACCESS[method, path] is Open.PROBE:
            continue
        answers = operation["responses"]
        expected = {"422", "503"} | ({"401", "403", "429"} if "security" in operation else set())
        expected |= {"404"} if "{" in path else set()
        assert expected <= set(answers)
        for status, answer in answers.items():
            if status >= "400" and (path, status) != (f"{V1}/keys", "404"):
                assert list(answer["content"]) == ["application/problem+json"]


def test_a_body_is_described_where_one_is_read(document: dict[str, Any], host: Host) -> None:
    for method, path, operation in operations(document):
        if "json" in VALID[method, path](host).options:
            [media] = operation["requestBody"]["content"].values()
            assert media["schema"]


def test_what_is_answered_fits_what_is_described(
    document: dict[str, Any], operator: httpx2.Client, host: Host
) -> None:
    for method, path in ROUTES:
        if (method, path) in UNDESCRIBED or path.endswith("/stream"):
            continue
        answers = document["paths"][path][method.lower()]["responses"]
        answer = send(operator, method, path, VALID[method, path](host))
        assert str(answer.status) in answers, f"{method} {path}"
        content = answers[str(answer.status)].get("content", {})
        media = answer.headers.get("content-type", "").partition(";")[0]
        assert media in content or (not content and not answer.text)
        if media == "application/json":
            schema = {**content[media]["schema"], "components": document["components"]}
            Draft202012Validator(schema).validate(json.loads(answer.text))


def test_its_examples_fit_its_schemas_and_are_accepted(
    document: dict[str, Any], operator: httpx2.Client, host: Host
) -> None:
    tried = 0
    for method, path, operation in operations(document):
        for media in operation.get("requestBody", {}).get("content", {}).values():
            if "example" not in media:
                continue
            tried += 1
            schema = {**media["schema"], "components": document["components"]}
            Draft202012Validator(schema).validate(media["example"])
            example = dict(media["example"])
            if "name" in example:
                example["name"] = unique("example")
            ask = VALID[method, path](host)
            answer = send(operator, method, path, Ask(ask.named, {**ask.options, "json": example}))
            assert answer.status in (200, 201, 202), answer.text
    assert tried >= 3


def test_values_of_secrets_are_only_written(document: dict[str, Any]) -> None:
    assert document["components"]["schemas"]["NewSecret"]["properties"]["value"]["writeOnly"] is True
    assert set(document["components"]["schemas"]["SecretDocument"]["properties"]) == {"name", "updated_ts"}


def test_every_instance_gives_the_same_document(document: dict[str, Any], module_url: str) -> None:
    with served(module_url, roles=API_ALONE) as other:
        assert other.by(None).get("/openapi.json").json() == document
