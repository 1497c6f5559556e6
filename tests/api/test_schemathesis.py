"""Whatever fits the OpenAPI document, and whatever does not: no 500, no answer that it does not describe."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from foliot.api.access.access_table import ACCESS, Open
from tests.api.hosts import Host
from tests.api.served import API_ALONE, OPERATOR_KEY, V1, Served
from tests.api.valid_requests import IDS, ROUTES, VALID

EXAMPLES = 8
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BEARER = {"Authorization": f"Bearer {OPERATOR_KEY}"}
STREAM = ("GET", f"{V1}/stream")
UNDESCRIBED = {("GET", "/openapi.json"), ("GET", "/"), *(route for route in ROUTES if route[0] == "HEAD")}

always_the_same = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
SERVER = {"roles": API_ALONE}


@pytest.fixture(scope="module")
def schema(server: Served) -> schemathesis.BaseSchema:
    document = server.by(None).get("/openapi.json").json()
    made = schemathesis.openapi.from_dict(document)
    made.config.update(base_url=server.url)
    return made


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as made:
        made.trust_env = False
        yield made


def ask(operation: Any, mode: GenerationMode, check: Callable[[Any], None], most: int = EXAMPLES) -> None:
    """Make requests, always the same ones, and check each."""

    @settings(always_the_same, max_examples=most)
    @given(case=operation.as_strategy(generation_mode=mode))
    def each(case: Any) -> None:
        check(case)

    each()


def described(routes: list[tuple[str, str]]) -> list[Any]:
    return [
        pytest.param(*route, id=name)
        for route, name in zip(ROUTES, IDS, strict=True)
        if route in routes and route not in {STREAM, *UNDESCRIBED}
    ]


HAVE_INPUT = [route for route in ROUTES if ACCESS[route] is not Open.PROBE]


@pytest.mark.parametrize(("method", "path"), described(ROUTES))
def test_what_fits_the_document_is_answered_as_it_says(
    server: Served,
    host: Host,
    schema: Any,
    session: requests.Session,
    method: str,
    path: str,
) -> None:
    there = VALID[method, path](host).named

    def check(case: Any) -> None:
        case.call_and_validate(session=session, headers=BEARER, checks=CHECKS)
        if there:
            case.path_parameters.update(there)
            case.call_and_validate(session=session, headers=BEARER, checks=CHECKS)

    ask(schema[path][method], GenerationMode.POSITIVE, check)
    assert server.bugs == []


@pytest.mark.parametrize(("method", "path"), described(HAVE_INPUT))
def test_what_does_not_fit_the_document_is_answered_as_it_says(
    server: Served,
    host: Host,
    schema: Any,
    session: requests.Session,
    method: str,
    path: str,
) -> None:
    there = VALID[method, path](host).named

    def check(case: Any) -> None:
        case.call_and_validate(session=session, headers=BEARER, checks=CHECKS)
        if there:
            case.path_parameters.update(there)
            case.call_and_validate(session=session, headers=BEARER, checks=CHECKS)

    ask(schema[path][method], GenerationMode.NEGATIVE, check)
    assert server.bugs == []


@pytest.mark.parametrize(
    ("method", "path"),
    described([route for route in ROUTES if ACCESS[route] not in (Open.PROBE, Open.ANYBODY)]),
)
def test_without_a_credential_the_answer_is_the_same_whatever_is_sent(
    server: Served, schema: Any, session: requests.Session, method: str, path: str
) -> None:
    def check(case: Any) -> None:
        case.headers.pop("X-Foliot-Token", None)
        case.headers.pop("Authorization", None)
        case.cookies.clear()
        answer = case.call(session=session)
        case.validate_response(answer, checks=CHECKS)
        allowed = (400, 401, 404) if ACCESS[method, path] is Open.AGENT else (401,)
        assert answer.status_code in allowed

    ask(schema[path][method], GenerationMode.POSITIVE, check, most=3)
    assert server.bugs == []


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_a_stream_begins_or_is_refused_as_the_document_says(
    server: Served, schema: Any, session: requests.Session, mode: GenerationMode
) -> None:
    method, path = STREAM
    documented = schema.raw_schema["paths"][path]["get"]["responses"]

    def check(case: Any) -> None:
        request = case.as_transport_kwargs(headers=BEARER)
        with session.request(**request, stream=True) as answer:
            [media] = documented[str(answer.status_code)]["content"]
            assert answer.headers["content-type"].partition(";")[0] == media

    ask(schema[path][method], mode, check)
    assert server.bugs == []
