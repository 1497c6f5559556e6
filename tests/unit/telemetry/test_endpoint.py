"""Where spans go is said once, in Foliot's words or in OpenTelemetry's; and nothing is loaded for nobody."""

import subprocess
import sys

import pytest

from foliot.instance.settings import load_settings
from foliot.model.errors import SettingError
from foliot.telemetry.endpoint import traces_url

TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
ALL = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    ("endpoint", "environment", "expected"),
    [
        (None, {}, None),
        (None, {ALL: "", TRACES: " "}, None),
        ("http://host:4318", {}, "http://host:4318/v1/traces"),
        ("http://host:4318/", {}, "http://host:4318/v1/traces"),
        ("http://host:4318/v1/traces", {}, "http://host:4318/v1/traces"),
        ("https://host/otlp", {}, "https://host/otlp/v1/traces"),
        (None, {ALL: "http://host:4318"}, "http://host:4318/v1/traces"),
        ("http://user:pass@[::1]:4318", {}, "http://user:pass@[::1]:4318/v1/traces"),
        (None, {TRACES: "http://host:4318/take"}, "http://host:4318/take"),
        (None, {TRACES: "http://one/take", ALL: "http://two"}, "http://one/take"),
        ("http://ours", {TRACES: "http://one", ALL: "http://two"}, "http://ours/v1/traces"),
        ("http://ours", {"OTEL_SDK_DISABLED": "TRUE"}, None),
        ("http://ours", {"OTEL_TRACES_EXPORTER": "none"}, None),
        ("http://ours", {"OTEL_TRACES_EXPORTER": "otlp"}, "http://ours/v1/traces"),
    ],
)
def test_the_address_is_made_as_the_specification_has_it(
    endpoint: str | None, environment: dict[str, str], expected: str | None
) -> None:
    assert traces_url(endpoint, environment) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        "host:4318",
        "grpc://host:4317",
        "http:///v1/traces",
        "http://host?x=1",
        "http://a b",
        "http://host:notaport",
        "http://host:99999",
        "http://host:0",
        "http://:4318",
        "http://user:hidden@:4318",
        "http://[::1",
    ],
)
@pytest.mark.parametrize("name", ["FOLIOT_OTLP_ENDPOINT", TRACES, ALL])
def test_a_wrong_address_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, wrong: str
) -> None:
    for each in (TRACES, ALL):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, wrong)
    with pytest.raises(SettingError, match=f"^{name}: must be an address such as http://") as refused:
        load_settings().traces_url  # noqa: B018
    assert wrong not in str(refused.value)  # it may hold a password


def test_without_an_address_nothing_that_makes_spans_is_loaded() -> None:
    code = """
import sys
from foliot.instance.spec import ENGINE, InstanceSpec
from foliot.instance.runtime import Instance
from foliot.instance.settings import Settings
instance = Instance(InstanceSpec(Settings(database_url="sqlite:///unused.db"), ENGINE))
loaded = [name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]
print(len(instance.observer._observers), loaded, "foliot.telemetry.traces" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={})
    # The one observer is the instance's own row in the registry.
    assert ran.stdout.split("\n")[0] == "1 [] False"
