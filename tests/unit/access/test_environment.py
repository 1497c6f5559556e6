"""Which variables isolated functions run without."""

import pytest

from foliot.access.environment import without_credentials


@pytest.mark.parametrize(
    "name", ["FOLIOT_SECRET_KEY", "foliot_secret_key", "Foliot_Admin_Key", "foliot_secret_value_TOKEN"]
)
def test_a_credential_is_withheld_however_its_name_is_written(name: str) -> None:
    assert without_credentials({name: "x", "PATH": "/bin"}) == {"PATH": "/bin"}
