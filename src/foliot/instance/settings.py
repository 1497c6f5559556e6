"""Settings from `FOLIOT_*` variables or `foliot.toml`, checked once at the start. Errors name the setting."""

import difflib
import os
import re
import sys
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from foliot.access.address_guard import HttpAllow
from foliot.access.cipher import Cipher
from foliot.access.environment import CREDENTIALS, PREFIX, SECRET_VALUE_PREFIX, is_from_kubernetes
from foliot.access.keys import MIN_SECRET_BYTES, OperatorKey
from foliot.api.access.rate_limits import parse_rate
from foliot.db.dialect import Pool
from foliot.db.opening import DEFAULT_POOLS, READ_SETTING, has_server, parse_url
from foliot.model.broker import ADDRESSES, kind_of, transports_of
from foliot.model.errors import SettingError
from foliot.outbox.open_publisher import RELAYED
from foliot.telemetry.endpoint import is_endpoint, traces_url
from foliot.worker.limits import Limits, size_of

MIN_MEMORY = 64 * 1024**2
_OF_THE_CLIENT = {"FOLIOT_URL", "FOLIOT_KEY"}


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, toml_file="foliot.toml", extra="forbid", frozen=True, allow_inf_nan=False
    )

    database_url: str = "sqlite:///foliot.db"
    database_read_url: str | None = None
    database_read_lag_seconds: float = Field(default=5, ge=0, le=86400)
    api_host: str = "127.0.0.1"
    api_port: int = Field(default=8700, ge=0, le=65535)
    api_processes: int = 1
    """Must be 1. The setting exists only to explain what to do instead."""
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    admin_key: SecretStr | None = None
    jwt_secret: SecretStr | None = None
    jwt_jwks_url: str | None = None
    jwt_issuer: str | None = None
    jwt_audience: str | None = None
    rate_limit: str = "6000/minute"
    rate_limit_anonymous: str = "100/15minutes"
    redis_url: str | None = None
    trusted_proxies: str = ""
    lease_provider: Literal["database", "etcd", "redis"] = "database"
    etcd_url: str | None = None
    lease_ttl_seconds: float = Field(default=3, ge=0.2, le=86400 * 3650)
    heartbeat_seconds: float = Field(default=1, ge=0.02, le=86400 * 3650)
    transport: str = "database"
    celery_app: str | None = None
    relay: SecretStr | None = None
    shards: int = Field(default=1, ge=1, le=1024)
    horizon_seconds: float = Field(default=3600, ge=1, le=30 * 86400)
    poll_seconds: float = Field(default=1, ge=0.01, le=86400)
    hints: Literal["on", "off", "redis"] = "on"
    worker_lease_seconds: float = Field(default=15, ge=0.3, le=86400)
    worker_concurrency: int = Field(default=50, ge=1, le=10_000)
    worker_poll_seconds: float | None = Field(default=None, ge=0.01, le=86400)
    worker_memory_limit: str | None = None
    worker_cpu_limit: int | None = Field(default=None, ge=1, le=4096)
    public_url: str | None = None
    http_allow: str = ""
    secret_key: SecretStr | None = None
    secrets_dir: Path | None = None
    stop_grace_seconds: float = Field(default=30, ge=0, le=86400)
    retention_days: float = Field(default=90, gt=0, le=36500)
    log_format: Literal["console", "json"] | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    otlp_endpoint: str | None = None
    pool_lease: int = Field(default=DEFAULT_POOLS[Pool.LEASE], ge=1, le=1000)
    pool_firing: int = Field(default=DEFAULT_POOLS[Pool.FIRING], ge=2, le=1000)
    pool_work: int = Field(default=DEFAULT_POOLS[Pool.WORK], ge=2, le=1000)
    pool_api: int = Field(default=DEFAULT_POOLS[Pool.API], ge=1, le=1000)

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str) -> str:
        if value != "memory":
            parse_url(value)
        return value

    @field_validator("database_read_url")
    @classmethod
    def _known_replica(cls, value: str | None) -> str | None:
        if value is not None:
            parse_url(value, READ_SETTING)
        return value

    @field_validator("api_processes")
    @classmethod
    def _is_one(cls, value: int) -> int:
        if value != 1:
            raise ValueError(
                "must be 1 or unset: for more processes, run several `foliot api` behind a proxy, "
                "each with its own FOLIOT_API_PORT"
            )
        return value

    @field_validator("admin_key")
    @classmethod
    def _is_operator_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            OperatorKey(value.get_secret_value())
        return value

    @field_validator("jwt_secret")
    @classmethod
    def _is_long(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value().encode()) < MIN_SECRET_BYTES:
            raise ValueError(f"needs at least {MIN_SECRET_BYTES} bytes")
        return value

    @field_validator("jwt_jwks_url")
    @classmethod
    def _is_web_address(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"^https?://[^/?#\s]+", value):
            raise ValueError("must be an address such as https://issuer.example.com/.well-known/jwks.json")
        return value

    @field_validator("redis_url")
    @classmethod
    def _is_redis(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"^(rediss?|unix)://", value):
            raise ValueError("must be an address such as redis://host:6379/0")
        return value

    @field_validator("etcd_url")
    @classmethod
    def _are_endpoints(cls, value: str | None) -> str | None:
        if value is not None and not all(
            re.match(r"^https?://([^/?#\s]*@)?[^/?#@\s]+/?\Z", each.strip()) for each in value.split(",")
        ):
            raise ValueError("must be one or more addresses such as http://one:2379,http://two:2379")
        return value

    @field_validator("transport")
    @classmethod
    def _are_transports(cls, value: str) -> str:
        transports_of(value)
        return value

    @field_validator("celery_app")
    @classmethod
    def _names_object(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*\Z", value):
            raise ValueError("must name a Celery application as MODULE:NAME, such as proj.celery:app")
        return value

    @field_validator("relay")
    @classmethod
    def _is_relayed(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and kind_of(value.get_secret_value()) not in RELAYED:
            raise ValueError(f"names nothing that events are shipped to; right would be {ADDRESSES}")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: str) -> str:
        for each in filter(None, (part.strip() for part in value.split(","))):
            try:
                ip_network(each, strict=False)
            except ValueError:
                raise ValueError(f'"{each}" is no address or network; right would be 10.0.0.0/8') from None
        return value

    @field_validator("rate_limit", "rate_limit_anonymous")
    @classmethod
    def _is_rate(cls, value: str) -> str:
        parse_rate(value)
        return value

    @field_validator("worker_memory_limit")
    @classmethod
    def _is_size(cls, value: str | None) -> str | None:
        if value is not None and size_of(value) < MIN_MEMORY:
            raise ValueError("must be at least 64MB")
        return value

    @field_validator("otlp_endpoint")
    @classmethod
    def _is_collector(cls, value: str | None) -> str | None:
        if value and not is_endpoint(value):
            raise ValueError("must be an address such as http://collector:4318")
        return value or None

    @field_validator("public_url")
    @classmethod
    def _is_base_url(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"https?://[^/?#\s]+(/[^?#\s]*)?\Z", value):
            raise ValueError("must be an address such as https://foliot.example.com")
        return value and value.rstrip("/")

    @model_validator(mode="after")
    def _heartbeat_fits(self) -> Self:
        if self.heartbeat_seconds > self.lease_ttl_seconds / 2:
            raise ValueError(
                "FOLIOT_HEARTBEAT_SECONDS must be at most half of FOLIOT_LEASE_TTL_SECONDS: "
                "a leader that misses one heartbeat must not lose its lease"
            )
        return self

    @model_validator(mode="after")
    def _servers_fit(self) -> Self:
        if self.database_read_url is not None and not has_server(self.database_url):
            raise ValueError("FOLIOT_DATABASE_READ_URL is for a replica, and only PostgreSQL has any")
        if self.hints == "redis" and self.redis_url is None:
            raise ValueError("FOLIOT_HINTS=redis needs FOLIOT_REDIS_URL")
        return self

    @model_validator(mode="after")
    def _provider_has_address(self) -> Self:
        if self.lease_provider != "database" and not self.lease_address:
            example = "http://host:2379" if self.lease_provider == "etcd" else "redis://host:6379/0"
            raise ValueError(
                f"FOLIOT_LEASE_PROVIDER={self.lease_provider} needs "
                f"FOLIOT_{self.lease_provider.upper()}_URL, such as {example}"
            )
        return self

    @property
    def lease_address(self) -> str:
        """Address of the lease provider; empty for the database."""
        by_provider = {"database": None, "etcd": self.etcd_url, "redis": self.redis_url}
        return by_provider[self.lease_provider] or ""

    @property
    def pools(self) -> dict[Pool, int]:
        return {
            Pool.LEASE: self.pool_lease,
            Pool.FIRING: self.pool_firing,
            Pool.WORK: self.pool_work,
            Pool.API: self.pool_api,
        }

    @field_validator("http_allow")
    @classmethod
    def _is_allow_list(cls, value: str) -> str:
        HttpAllow.parse(value)
        return value

    @field_validator("secret_key")
    @classmethod
    def _is_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            Cipher.from_keys(value.get_secret_value())
        return value

    @property
    def worker_limits(self) -> Limits:
        memory = self.worker_memory_limit
        return Limits(None if memory is None else size_of(memory), self.worker_cpu_limit)

    @property
    def http_allowed(self) -> HttpAllow:
        return HttpAllow.parse(self.http_allow)

    @property
    def cipher(self) -> Cipher | None:
        return None if self.secret_key is None else Cipher.from_keys(self.secret_key.get_secret_value())

    @property
    def uses_hints(self) -> bool:
        """Whether database connections keep their session, which LISTEN and prepared statements need."""
        return self.hints == "on"

    @property
    def hints_redis_url(self) -> str | None:
        """The Redis that carries hints; None: the database carries them, or nothing does."""
        return None if self.hints == "off" else self.redis_url

    @property
    def traces_url(self) -> str | None:
        """Where spans are sent; None: tracing is off. Raises SettingError for a wrong OTEL_* variable."""
        return traces_url(self.otlp_endpoint, os.environ)

    @property
    def effective_log_format(self) -> Literal["console", "json"]:
        return self.log_format or ("console" if sys.stderr.isatty() else "json")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings, _Environment(settings_cls), TomlConfigSettingsSource(settings_cls))


class _Environment(EnvSettingsSource):
    """Environment variables, without those that Kubernetes sets for its services."""

    def __call__(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in super().__call__().items()
            if not (isinstance(value, str) and is_from_kubernetes(PREFIX + name.upper(), value))
        }


def load_settings(**overrides: Any) -> Settings:
    """Read the settings. Raises a SettingError that names each wrong one and says what would be right."""
    _refuse_unknown()
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        raise SettingError("; ".join(_explain(item) for item in error.errors())) from None
    except ValueError as error:
        raise SettingError(f"{Path('foliot.toml')} can't be read: {error}") from None


def _refuse_unknown() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | _OF_THE_CLIENT
    for name, value in sorted(os.environ.items()):
        if not name.startswith(PREFIX) or is_from_kubernetes(name, value):
            continue
        if name not in known and not name.startswith(SECRET_VALUE_PREFIX):
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise SettingError(f"{name} is not a setting of this version{hint}")


def _explain(item: Any) -> str:
    message = str(item["msg"]).removeprefix("Value error, ")
    if not item["loc"]:
        return message
    name = PREFIX + str(item["loc"][0]).upper()
    if item["type"] == "extra_forbidden":
        close = difflib.get_close_matches(str(item["loc"][0]), list(Settings.model_fields), n=1)
        return f"{name} is not a setting of this version" + (f"; did you mean {close[0]}?" if close else "")
    if name in CREDENTIALS:
        return f"{name}: {message}"
    return f"{name}: {message} (it is {item['input']!r})"
