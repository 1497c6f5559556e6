"""Whatever fits the OpenAPI document, and whatever does not: no 500, no answer that it does not describe."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
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
from tests.api.hosts import Host, two_hosts
from tests.api.served import API_ALONE, OPERATOR_KEY, V1, Served, served
from tests.api.valid_requests import IDS, ROUTES, VALID
from tests.servers import PostgresServer

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
DATABASES = ("sqlite", "postgres")


@dataclass(frozen=True)
class Place:
    """A server, its host, and the document that describes it."""

    server: Served
    host: Host
    schema: Any


@pytest.fixture(scope="module")
def places(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Place]]:
    """Start a server on each database. Both run at once, because each test chooses one."""
    with ExitStack() as stack:
        urls = {
            "sqlite": f"sqlite:///{tmp_path_factory.mktemp('served') / 'foliot.db'}",
            "postgres": stack.enter_context(postgres_server.database()),
        }
        yield {
            database: place_of(stack.enter_context(served(urls[database], roles=API_ALONE)))
            for database in DATABASES
        }


def place_of(server: Served) -> Place:
    document = server.by(None).get("/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=server.url)
    return Place(server, two_hosts(server)[0], schema)


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as made:
        made.trust_env = False
        yield made


def ask(operation: Any, mode: GenerationMode, check: Callable[[Any], None], limit: int = EXAMPLES) -> None:
    """Make requests, always the same ones, and check each."""

    @settings(always_the_same, max_examples=limit)
    @given(case=operation.as_strategy(generation_mode=mode))
    def each(case: Any) -> None:
        check(case)

    each()


def each_operation(routes: list[tuple[str, str]], *, first: int) -> pytest.MarkDecorator:
    """Test each operation on one database: on each in turn, beginning with the one at `first`.

    What fits is asked on one and what does not fit on the other, so every operation is asked on both.
    """
    chosen = []
    for index, (route, name) in enumerate(zip(ROUTES, IDS, strict=True), start=first):
        if route in routes and route not in {STREAM, *UNDESCRIBED}:
            database = DATABASES[index % 2]
            chosen.append(pytest.param(database, *route, id=f"{database}-{name}"))
    return pytest.mark.parametrize(("database", "method", "path"), chosen)


HAVE_INPUT = [route for route in ROUTES if ACCESS[route] is not Open.PROBE]


@each_operation(ROUTES, first=0)
def test_what_fits_the_document_is_answered_as_it_says(
    places: dict[str, Place], session: requests.Session, database: str, method: str, path: str
) -> None:
    place = places[database]
    there = VALID[method, path](place.host).named

    def check(case: Any) -> None:
        case.call_and_validate(session=session, headers=BEARER, checks=CHECKS)
        if there:
            case.path_parameters.update(there)
            case.call_and_validate(session=session, headers=BEARER, checks=CHECKS)

    ask(place.schema[path][method], GenerationMode.POSITIVE, check)
    assert place.server.bugs == []


@each_operation(HAVE_INPUT, first=1)
def test_what_does_not_fit_the_document_is_answered_as_it_says(
    places: dict[str, Place], session: requests.Session, database: str, method: str, path: str
) -> None:
    place = places[database]
    there = VALID[method, path](place.host).named

    def check(case: Any) -> None:
        case.call_and_validate(session=session, headers=BEARER, checks=CHECKS)
        if there:
            case.path_parameters.update(there)
            case.call_and_validate(session=session, headers=BEARER, checks=CHECKS)

    ask(place.schema[path][method], GenerationMode.NEGATIVE, check)
    assert place.server.bugs == []


@each_operation([route for route in ROUTES if ACCESS[route] not in (Open.PROBE, Open.ANYBODY)], first=0)
def test_without_a_credential_the_answer_is_the_same_whatever_is_sent(
    places: dict[str, Place], session: requests.Session, database: str, method: str, path: str
) -> None:
    place = places[database]

    def check(case: Any) -> None:
        case.headers.pop("X-Foliot-Token", None)
        case.headers.pop("Authorization", None)
        case.cookies.clear()
        answer = case.call(session=session)
        case.validate_response(answer, checks=CHECKS)
        allowed = (400, 401, 404) if ACCESS[method, path] is Open.AGENT else (401,)
        assert answer.status_code in allowed

    ask(place.schema[path][method], GenerationMode.POSITIVE, check, limit=3)
    assert place.server.bugs == []


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_a_stream_begins_or_is_refused_as_the_document_says(
    places: dict[str, Place], session: requests.Session, database: str, mode: GenerationMode
) -> None:
    place = places[database]
    method, path = STREAM
    documented = place.schema.raw_schema["paths"][path]["get"]["responses"]

    def check(case: Any) -> None:
        request = case.as_transport_kwargs(headers=BEARER)
        with session.request(**request, stream=True) as answer:
            [media] = documented[str(answer.status_code)]["content"]
            assert answer.headers["content-type"].partition(";")[0] == media

    ask(place.schema[path][method], mode, check)
    assert place.server.bugs == []
