"""The HTTP application of this version: health, metrics, and a page that says what this is."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from foliot.api import errors
from foliot.version import __version__

_PAGE = f"""\
Foliot {__version__}: a distributed scheduler. Every due time is decided exactly once.

/healthz        whether this process is alive
/readyz         whether it can do its work, and why not
/metrics        what it measures, for Prometheus
/openapi.json   these routes, described

The web interface comes with a later version.
"""

Problems = Callable[[], Awaitable[list[str]]]


def make_app(problems: Problems, metrics: CollectorRegistry, *routers: APIRouter) -> FastAPI:
    """`problems` says why the instance is not ready; none: it is."""
    app = FastAPI(title="Foliot", version=__version__, docs_url=None, redoc_url=None)
    errors.install(app)
    for router in routers:
        app.include_router(router)

    @app.get("/", response_class=PlainTextResponse, summary="What this is")
    async def page() -> str:
        return _PAGE

    @app.get("/healthz", summary="Whether this process is alive")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get(
        "/readyz",
        summary="Whether this instance can do its work",
        responses={503: {"description": "Not now; `problems` says why"}},
    )
    async def readyz() -> JSONResponse:
        found = await problems()
        document: dict[str, Any] = {"status": "not ready" if found else "ready", "problems": found}
        return JSONResponse(document, status_code=503 if found else 200)

    @app.get("/metrics", response_class=PlainTextResponse, summary="Metrics in Prometheus' text format")
    async def read_metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics), media_type=content_type)

    return app
