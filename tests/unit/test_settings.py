"""Settings: read from the environment or a file, checked once, wrong ones refused by name."""

import os
from pathlib import Path

import pytest

from foliot.db.dialect import Pool
from foliot.instance.settings import Settings, load_settings
from foliot.model.errors import SettingError


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the environment nor the folder of whoever runs the tests has a say."""

    for name in list(os.environ):
        if name.startswith("FOLIOT_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def refused(**overrides: object) -> str:
    with pytest.raises(SettingError) as told:
        load_settings(**overrides)
    line = str(told.value)
    assert "\n" not in line
    return line


def test_the_defaults_are_those_of_the_documentation() -> None:
    settings = load_settings()
    assert settings.database_url == "sqlite:///foliot.db"
    assert (settings.api_host, settings.api_port) == ("127.0.0.1", 8700)
    assert (settings.lease_provider, settings.lease_ttl_seconds, settings.heartbeat_seconds) == (
        "database",
        3,
        1,
    )
    assert (settings.shards, settings.horizon_seconds, settings.poll_seconds) == (1, 3600, 1)
    assert (settings.hints, settings.uses_hints) == ("on", True)
    assert (settings.worker_lease_seconds, settings.retention_days) == (15, 90)
    assert settings.transport == "database"


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_LEASE_TTL_SECONDS", "1")
    monkeypatch.setenv("FOLIOT_HEARTBEAT_SECONDS", "0.1")
    monkeypatch.setenv("FOLIOT_HINTS", "off")
    settings = load_settings()
    assert (settings.lease_ttl_seconds, settings.heartbeat_seconds, settings.uses_hints) == (1, 0.1, False)


def test_a_file_is_read_and_the_environment_goes_before_it_and_an_option_before_both(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "foliot.toml").write_text("api_port = 1111\nshards = 4\nretention_days = 7\n")
    monkeypatch.setenv("FOLIOT_API_PORT", "2222")
    monkeypatch.setenv("FOLIOT_SHARDS", "8")
    settings = load_settings(shards=16, database_url=None)
    assert (settings.retention_days, settings.api_port, settings.shards) == (7, 2222, 16)


def test_a_setting_that_does_not_exist_is_refused_and_the_nearest_suggested(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FOLIOT_LEASE_TLL_SECONDS", "3")
    line = refused()
    assert "FOLIOT_LEASE_TLL_SECONDS" in line
    assert "did you mean FOLIOT_LEASE_TTL_SECONDS?" in line
    monkeypatch.delenv("FOLIOT_LEASE_TLL_SECONDS")
    (tmp_path / "foliot.toml").write_text("shard = 4\n")
    assert "did you mean shards?" in refused()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FOLIOT_API_PORT", "70000"),
        ("FOLIOT_API_PORT", "http"),
        ("FOLIOT_SHARDS", "0"),
        ("FOLIOT_SHARDS", "1025"),
        ("FOLIOT_LEASE_TTL_SECONDS", "nan"),
        ("FOLIOT_LEASE_TTL_SECONDS", "-1"),
        ("FOLIOT_POLL_SECONDS", "0"),
        ("FOLIOT_HINTS", "maybe"),
        ("FOLIOT_LEASE_PROVIDER", "zookeeper"),
        ("FOLIOT_RETENTION_DAYS", "0"),
        ("FOLIOT_LOG_FORMAT", "xml"),
        ("FOLIOT_DATABASE_URL", "mysql://localhost/foliot"),
        ("FOLIOT_DATABASE_URL", "foliot"),
        ("FOLIOT_DATABASE_URL", "postgresql://localhost"),
        ("FOLIOT_DATABASE_URL", "sqlite:///:memory:"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_setting(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert name in refused()


def test_several_processes_of_the_api_are_refused_with_what_to_do_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FOLIOT_API_PROCESSES", "2")
    assert "run several `foliot api` behind a proxy" in refused()
    monkeypatch.setenv("FOLIOT_API_PROCESSES", "1")
    assert load_settings().api_processes == 1


def test_a_heartbeat_that_could_miss_the_lease_is_refused() -> None:
    assert "FOLIOT_HEARTBEAT_SECONDS" in refused(lease_ttl_seconds=3, heartbeat_seconds=2)
    assert load_settings(lease_ttl_seconds=3, heartbeat_seconds=1.5).heartbeat_seconds == 1.5


def test_a_password_in_the_database_url_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", "mysql://user:hunter2@localhost/foliot")
    assert "hunter2" not in refused()


@pytest.mark.parametrize(
    "url", ["memory", "sqlite:///a.db", "postgresql://u:p@h:1/d", "postgres://u:p@h:1/d"]
)
def test_the_databases_that_are_supported_are_taken(url: str) -> None:
    assert load_settings(database_url=url).database_url == url


def test_a_file_that_can_not_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "foliot.toml").write_text("api_port = = 1")
    assert "foliot.toml" in refused()


def test_settings_of_parts_to_come_and_of_the_client_are_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FOLIOT_URL", "FOLIOT_KEY", "FOLIOT_HTTP_ALLOW", "FOLIOT_SECRET_VALUE_TOKEN"):
        monkeypatch.setenv(name, "x")
    assert isinstance(load_settings(), Settings)


def test_pools_are_sized_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_POOL_WORK", "7")
    assert load_settings().pools[Pool.WORK] == 7


INJECTED = {
    "FOLIOT_SERVICE_HOST": "10.96.0.12",
    "FOLIOT_SERVICE_PORT": "8700",
    "FOLIOT_SERVICE_PORT_HTTP": "8700",
    "FOLIOT_PORT": "tcp://10.96.0.12:8700",
    "FOLIOT_PORT_8700_TCP": "tcp://10.96.0.12:8700",
    "FOLIOT_PORT_8700_TCP_PROTO": "tcp",
    "FOLIOT_PORT_8700_TCP_PORT": "8700",
    "FOLIOT_PORT_8700_TCP_ADDR": "10.96.0.12",
    "FOLIOT_API_SERVICE_HOST": "10.96.0.13",
    "FOLIOT_API_SERVICE_PORT": "8700",
    "FOLIOT_API_PORT": "tcp://10.96.0.13:8700",
    "FOLIOT_API_PORT_8700_TCP": "tcp://10.96.0.13:8700",
    "FOLIOT_METRICS_PORT": "tcp://[fd00::7]:9100",
    "FOLIOT_METRICS_PORT_9100_TCP_ADDR": "fd00::7",
    "FOLIOT_DNS_PORT": "udp://10.96.0.14:53",
    "FOLIOT_DNS_PORT_53_UDP": "udp://10.96.0.14:53",
    "FOLIOT_DNS_PORT_53_UDP_PROTO": "udp",
    "FOLIOT_SS7_PORT_2905_SCTP": "sctp://10.96.0.15:2905",
    "FOLIOT_TRANSPORT_SERVICE_HOST": "10.96.0.16",
}
"""What Kubernetes injects for services called foliot, foliot-api, foliot-metrics and so on."""


def test_variables_that_kubernetes_injects_for_a_service_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in INJECTED.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert (settings.api_port, settings.metrics_port, settings.transport) == (8700, None, "database")


def test_an_injected_variable_leaves_the_file_and_the_option_in_force(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FOLIOT_API_PORT", "tcp://10.96.0.13:8700")
    (tmp_path / "foliot.toml").write_text("api_port = 1111\n")
    assert load_settings().api_port == 1111
    assert load_settings(api_port=2222).api_port == 2222


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FOLIOT_PORT", "8700"),
        ("FOLIOT_PORT", "http://10.96.0.12:8700"),
        ("FOLIOT_APIPORT", "tcp://10.96.0.12:8700"),
        ("FOLIOT_METRIC_PORT", "9100"),
        ("FOLIOT_API_PORT", "tcp://10.96.0.12"),
        ("FOLIOT_API_PORT", "tcp://:8700"),
        ("FOLIOT_API_HOST_SERVICE", "10.96.0.12"),
        ("FOLIOT_SERVICE_PORTS", "8700"),
        ("FOLIOT_PORT_X_TCP", "tcp://10.96.0.12:8700"),
        ("FOLIOT_PORT_8700_TCP", "8700"),
        ("FOLIOT_PORT_8700_TCP_NAME", "http"),
    ],
)
def test_what_only_resembles_an_injected_variable_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert name in refused()
