"""The HTTP application: health and metrics for machines, the API for callers with a credential, the UI."""

from collections.abc import Awaitable, Callable, Sequence

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.telemetry import TelemetryConfig

from foliot.api import openapi
from foliot.api.access.gate import Gate, GatedRoute
from foliot.api.http import error_responses
from foliot.api.http.middleware import OnAnswer, OnError, add_front
from foliot.api.ui import ui_routes
from foliot.telemetry.health.metrics_page import MetricsPage
from foliot.telemetry.health.probes import readiness_document
from foliot.version import __version__

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}
"""Disables FastAPI's telemetry. Foliot has its own, and FastAPI's reads the environment on every request."""

Problems = Callable[[], Awaitable[list[str]]]


def make_app(
    problems: Problems,
    metrics: MetricsPage,
    gate: Gate,
    routers: Sequence[APIRouter],
    on_error: OnError,
    on_answer: OnAnswer,
    public_path: str = "",
) -> FastAPI:
    """Build the application.

    `problems` returns why the instance is not ready (empty: it is ready). `on_error` is called for every
    unhandled exception, `on_answer` for every response.
    """
    app = FastAPI(
        title="Foliot",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    app.state.gate = gate
    error_responses.install(app)
    openapi.install(app)
    add_front(app, on_error, on_answer, public_path=public_path)
    for router in (_probes(problems, metrics), *routers):
        app.router.routes.extend(router.routes)
    # Last, because the UI's page matches every path that no other route matches.
    app.router.routes.extend(ui_routes())
    _make_ready(app)
    return app


def _make_ready(app: FastAPI) -> None:
    """Prepare all routes now. FastAPI would do it during the first request, which would have to wait."""
    nowhere = {"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []}
    for route in app.router.routes:
        route.matches(nowhere)


def _probes(problems: Problems, metrics: MetricsPage) -> APIRouter:
    router = APIRouter(tags=["health"], route_class=GatedRoute)

    @router.head("/healthz", include_in_schema=False)
    @router.get("/healthz", summary="Whether this process is alive")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @router.head("/readyz", include_in_schema=False)
    @router.get(
        "/readyz",
        summary="Whether this instance can do its work",
        responses={503: {"description": "Not now; `problems` says why"}},
    )
    async def readyz() -> JSONResponse:
        found = await problems()
        return JSONResponse(readiness_document(found), status_code=503 if found else 200)

    @router.head("/metrics", include_in_schema=False)
    @router.get("/metrics", response_class=PlainTextResponse, summary="Metrics in Prometheus' text format")
    async def read_metrics(request: Request) -> Response:
        content, content_type = metrics.render(request.headers.get("accept", ""))
        return Response(content, media_type=content_type)

    return router
