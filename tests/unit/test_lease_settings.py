"""Which settings of the lease providers are taken, and what is said of those that are not."""

from pathlib import Path

import pytest

from foliot.instance.settings import load_settings
from foliot.model.errors import SettingError


@pytest.fixture(autouse=True)
def _no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({"lease_provider": "database", "etcd_url": "http://a:2379", "redis_url": "redis://b"}, ""),
        ({"lease_provider": "redis", "redis_url": "redis://u:p@b:6379/0"}, "redis://u:p@b:6379/0"),
        ({"lease_provider": "etcd", "etcd_url": "http://a:2379"}, "http://a:2379"),
        (
            {"lease_provider": "etcd", "etcd_url": "https://u:p@a:2379/, http://[::1]:2379"},
            "https://u:p@a:2379/, http://[::1]:2379",
        ),
    ],
)
def test_each_provider_has_its_address(settings: dict[str, str], address: str) -> None:
    assert load_settings(**settings).lease_address == address


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"lease_provider": "etcd"}, "FOLIOT_ETCD_URL"),
        ({"lease_provider": "etcd", "redis_url": "redis://b"}, "FOLIOT_ETCD_URL"),
        ({"lease_provider": "redis"}, "FOLIOT_REDIS_URL"),
        ({"lease_provider": "redis", "etcd_url": "http://a:2379"}, "FOLIOT_REDIS_URL"),
        ({"lease_provider": "consul"}, "FOLIOT_LEASE_PROVIDER"),
        ({"etcd_url": "a:2379"}, "FOLIOT_ETCD_URL"),
        ({"etcd_url": "etcd://a:2379"}, "FOLIOT_ETCD_URL"),
        ({"etcd_url": "http://a:2379,"}, "FOLIOT_ETCD_URL"),
        ({"etcd_url": "http://a:2379/v3/kv"}, "FOLIOT_ETCD_URL"),
        ({"etcd_url": "http://u:hunter2@a:2379;http://b"}, "FOLIOT_ETCD_URL"),
    ],
)
def test_a_wrong_one_is_refused_by_name_and_no_password_is_told(settings: dict[str, str], named: str) -> None:
    with pytest.raises(SettingError) as raised:
        load_settings(**settings)
    assert named in str(raised.value)
    assert "hunter2" not in str(raised.value)
