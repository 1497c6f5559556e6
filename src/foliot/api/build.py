"""Build the REST API from its components."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import FastAPI, Request

from foliot.access.hosts import Hosts
from foliot.access.idempotency_sql import IdempotencyKeys
from foliot.access.jwt_tokens import IssuerKeys, TokenVerifier
from foliot.access.keys_sql import ApiKeys
from foliot.access.sessions import Sessions
from foliot.api.access.credentials import SESSION_COOKIE, Authenticator
from foliot.api.access.gate import Gate, GatedRoute
from foliot.api.access.idempotency_keys import Idempotency
from foliot.api.access.rate_limits import (
    MemoryRates,
    RateKind,
    RateLimiter,
    RedisRates,
    parse_rate,
)
from foliot.api.api_pruning import ApiPruner
from foliot.api.app import Problems, make_app
from foliot.api.change_feed import Feed
from foliot.api.replica_reads import Reads
from foliot.api.routes.access import access_routes
from foliot.api.routes.agents import agent_routes
from foliot.api.routes.apply import apply_routes
from foliot.api.routes.backfills import backfill_routes
from foliot.api.routes.bulk import bulk_routes
from foliot.api.routes.cluster import cluster_routes
from foliot.api.routes.events import event_routes
from foliot.api.routes.executions import execution_routes
from foliot.api.routes.kinds import kind_routes
from foliot.api.routes.notifications import notification_routes
from foliot.api.routes.outlook import outlook_routes
from foliot.api.routes.registry import registry_routes
from foliot.api.routes.schedule_history import schedule_history_routes
from foliot.api.routes.schedules import schedule_routes
from foliot.api.routes.shared import shared_routes
from foliot.api.routes.sign_in import sign_in_routes
from foliot.api.routes.stream import stream_routes
from foliot.api.routes.timeline import timeline_routes
from foliot.api.services import Services
from foliot.db.hints import Hints
from foliot.model.errors import UnauthenticatedError
from foliot.model.event import Observer
from foliot.model.instance_events import RequestFailed
from foliot.queries.changes import ChangeFeed
from foliot.service import Service
from foliot.telemetry.health.metrics_page import MetricsPage
from foliot.timing.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOptions:
    operator_key: str | None
    jwt_secret: str | None = None
    jwt_jwks_url: str | None = None
    jwt_issuer: str | None = None
    jwt_audience: str | None = None
    rate_limit: str = "off"
    rate_limit_anonymous: str = "off"
    redis_url: str | None = None
    public_url: str | None = None
    retention_s: float = 90 * 86400.0


class RestApi:
    """The REST API and its background services. The instance must run `services`."""

    def __init__(
        self,
        services: Services,
        hints: Hints,
        observer: Observer,
        clock: Clock,
        options: ApiOptions,
        *,
        available_targets: frozenset[str],
        is_running: Callable[[], bool],
    ) -> None:
        database = services.database
        self._services = services
        self._clock = clock
        self._observer = observer
        self._available_targets = available_targets
        self._issuer_keys = None if options.jwt_jwks_url is None else IssuerKeys(options.jwt_jwks_url, clock)
        self.authenticator = Authenticator(
            operator_key=options.operator_key,
            keys=ApiKeys(database),
            sessions=Sessions(database),
            hosts=Hosts(database),
            verifier=self._verifier(options),
            clock=clock,
        )
        self._rates = _rates(clock, observer, options)
        self.limiter = RateLimiter(
            self._rates,
            {
                RateKind.CREDENTIAL: parse_rate(options.rate_limit),
                RateKind.ANONYMOUS: parse_rate(options.rate_limit_anonymous),
                RateKind.FAILED: parse_rate(options.rate_limit_anonymous),
            },
        )
        self.feed = Feed(ChangeFeed(database), clock, hints)
        self._own_names = () if options.public_url is None else (urlsplit(options.public_url).netloc,)
        self._public_path = urlsplit(options.public_url or "").path
        self._is_public_secure = (options.public_url or "").startswith("https:")
        self.gate = Gate(
            self.authenticator,
            self.limiter,
            Idempotency(IdempotencyKeys(database), clock),
            observer,
            is_running,
            self._own_names,
            Reads(services.replica),
        )
        self.services: tuple[Service, ...] = (
            self.limiter,
            self.feed,
            ApiPruner(database, options.retention_s),
        )

    def _verifier(self, options: ApiOptions) -> TokenVerifier | None:
        if options.jwt_secret is None and self._issuer_keys is None:
            return None
        return TokenVerifier(
            self._clock,
            secret=options.jwt_secret,
            issuer_keys=self._issuer_keys,
            issuer=options.jwt_issuer,
            audience=options.jwt_audience,
        )

    def app(self, problems: Problems, metrics: MetricsPage) -> FastAPI:
        services = self._services
        routers = (
            schedule_routes(services),
            schedule_history_routes(services),
            backfill_routes(services),
            bulk_routes(services),
            apply_routes(services),
            execution_routes(services),
            agent_routes(services.commands.agents, services.tokens),
            outlook_routes(services),
            timeline_routes(services),
            kind_routes(self._available_targets),
            registry_routes(services),
            cluster_routes(services),
            shared_routes(services),
            event_routes(services),
            notification_routes(services),
            access_routes(services),
            sign_in_routes(
                services,
                self.authenticator,
                self._own_names,
                is_public_secure=self._is_public_secure,
            ),
            stream_routes(self.feed, self._clock, self._is_still_valid, GatedRoute),
        )
        return make_app(
            problems,
            metrics,
            self.gate,
            routers,
            self._report,
            self._observer.notify,
            self._public_path,
        )

    def _report(self, error: Exception, request_id: str) -> None:
        self._observer.notify(RequestFailed(request_id, error))

    async def _is_still_valid(self, request: Request) -> bool:
        try:
            await self.authenticator.authenticate(
                request.headers.get("authorization"), request.cookies.get(SESSION_COOKIE)
            )
        except UnauthenticatedError:
            return False
        return True

    def end_streams(self) -> None:
        """End all event streams, because the instance stops."""
        self.feed.close()

    async def close(self) -> None:
        if self._issuer_keys is not None:
            await self._issuer_keys.close()
        if isinstance(self._rates, RedisRates):
            await self._rates.close()
        if self._services.kept is not None:
            await self._services.kept.close()


def _rates(clock: Clock, observer: Observer, options: ApiOptions) -> MemoryRates | RedisRates:
    if options.redis_url is not None:
        return RedisRates(options.redis_url, clock, observer)
    return MemoryRates(clock)
