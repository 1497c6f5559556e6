"""Read the address for spans from FOLIOT_OTLP_ENDPOINT or OpenTelemetry's standard variables."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from foliot.model.errors import SettingError

SETTING = "FOLIOT_OTLP_ENDPOINT"
TRACES_PATH = "/v1/traces"
_OF_TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_OF_ALL = "OTEL_EXPORTER_OTLP_ENDPOINT"
_URL = re.compile(r"https?://[^/?#\s]+[^?#\s]*")


def is_endpoint(text: str) -> bool:
    if _URL.fullmatch(text) is None:
        return False
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        return False


def traces_url(endpoint: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the full URL for traces. None: not set, or OpenTelemetry is disabled. Raises SettingError."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return None
    given = {
        SETTING: endpoint,
        _OF_TRACES: environment.get(_OF_TRACES, "").strip(),
        _OF_ALL: environment.get(_OF_ALL, "").strip(),
    }
    for name, text in given.items():
        if text:
            if not is_endpoint(text):
                raise SettingError(f"{name}: must be an address such as http://collector:4318")
            # OpenTelemetry's specification: only the variable for traces is used without adding a path.
            return text if name == _OF_TRACES else _with_path(text)
    return None


def _with_path(base: str) -> str:
    base = base.rstrip("/")
    return base if base.endswith(TRACES_PATH) else base + TRACES_PATH
