"""Environment variables: which are Foliot's settings, which hold credentials, which Kubernetes injects."""

import re
from collections.abc import Mapping

PREFIX = "FOLIOT_"
SECRET_VALUE_PREFIX = "FOLIOT_SECRET_VALUE_"  # noqa: S105 - the name of a variable, not its value
CREDENTIALS = frozenset(
    {
        "FOLIOT_ADMIN_KEY",
        "FOLIOT_DATABASE_READ_URL",
        "FOLIOT_DATABASE_URL",
        "FOLIOT_ETCD_URL",
        "FOLIOT_JWT_SECRET",
        "FOLIOT_KEY",
        "FOLIOT_OTLP_ENDPOINT",
        "FOLIOT_REDIS_URL",
        "FOLIOT_RELAY",
        "FOLIOT_SECRET_KEY",
        "FOLIOT_TRANSPORT",
    }
)
"""Settings that are a credential or may contain one. Error messages never repeat their values."""

WITHHELD = CREDENTIALS | {"FOLIOT_SECRETS_DIR"}
"""Settings removed from the environment of isolated functions, in addition to all FOLIOT_SECRET_VALUE_*."""

_SERVICE = re.compile(r"_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)\Z")
_SERVICE_PORT = re.compile(r"_PORT(_\d+_(TCP|UDP|SCTP))?\Z")
_SERVICE_PORT_PART = re.compile(r"_PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)\Z")
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://[^/?#\s]+:\d+\Z")


def is_from_kubernetes(name: str, value: str) -> bool:
    """Whether Kubernetes injected this variable for a service called `foliot` or `foliot-…`.

    The name alone is not enough: FOLIOT_API_PORT is a Foliot setting, but Kubernetes also sets it, to a value
    such as `tcp://10.0.0.1:8700`, for a service called `foliot-api`.
    """
    if _SERVICE.search(name) or _SERVICE_PORT_PART.search(name):
        return True
    return bool(_SERVICE_PORT.search(name) and _SERVICE_ADDRESS.match(value))


def is_withheld(name: str) -> bool:
    """Whether to remove this variable for isolated functions. Ignores case, as reading settings does."""
    name = name.upper()
    return name in WITHHELD or name.startswith(SECRET_VALUE_PREFIX)


def without_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for processes that run task functions."""
    return {name: value for name, value in environment.items() if not is_withheld(name)}
