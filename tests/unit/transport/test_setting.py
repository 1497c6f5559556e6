"""FOLIOT_TRANSPORT: checked at the start, and never said back."""

import pytest

from foliot.instance.settings import load_settings
from foliot.model.errors import SettingError


@pytest.mark.parametrize(
    "value",
    [
        "database",
        "amqp://guest:guest@broker:5672/",
        "high=redis://:secret@broker:6379/0;low=database",
        "high=nats://broker:4222; medium=kafka://one:9092,two:9092",
    ],
)
def test_what_names_a_broker_is_taken(value: str) -> None:
    assert load_settings(transport=value).transport == value


@pytest.mark.parametrize(
    "value",
    [
        "carrier-pigeon",
        "http://user:secret@broker",
        "high=secret://x",
        "high=database;high=database",
        "urgent=database",
    ],
)
def test_what_names_none_is_refused_without_being_repeated(value: str) -> None:
    with pytest.raises(SettingError, match="FOLIOT_TRANSPORT") as raised:
        load_settings(transport=value)
    assert "secret" not in str(raised.value)
    assert value not in str(raised.value)
