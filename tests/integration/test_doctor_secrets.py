"""`foliot doctor` says whether stored secrets can be read, and never shows one."""

import pytest

from foliot.access.cipher import Cipher
from foliot.access.secrets_sql import ReadableSecrets, Secrets
from foliot.cli.process.checks import Level, check_secrets
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.planning.change import Author
from tests.conftest import OpenStore

OLD, NEW = "the first key of 32 characters...", "another key that is as long as it"
SOMEBODY = Author("ann")


@pytest.mark.parametrize(
    ("keys", "level", "says"),
    [
        (OLD, Level.OK, "fits all"),
        (f"{NEW},{OLD}", Level.WARN, "2 of them under an older key"),
        (NEW, Level.FAIL, "does not fit mail, token"),
        (None, Level.FAIL, "FOLIOT_SECRET_KEY is not set"),
    ],
)
async def test_stored_secrets_are_tried_with_the_keys_that_there_are(
    database_url: str, open_test_store: OpenStore, keys: str | None, level: Level, says: str
) -> None:
    database = (await open_test_store(database_url)).database
    for name in ("token", "mail"):
        await Secrets(database, Cipher.from_keys(OLD)).set(DEFAULT_HOST_ID, name, "swordfish", SOMEBODY)
    cipher = None if keys is None else Cipher.from_keys(keys)
    finding = check_secrets(await Secrets(database, cipher).standing(), has_key=keys is not None)
    assert (finding.check, finding.level) == ("secrets", level)
    assert says in finding.detail
    assert "2 stored" in finding.detail
    assert "swordfish" not in f"{finding.detail} {finding.advice}"
    assert bool(finding.advice) == (level is not Level.OK)


async def test_without_secrets_no_key_is_needed(database_url: str, open_test_store: OpenStore) -> None:
    database = (await open_test_store(database_url)).database
    standing = await Secrets(database, None).standing()
    assert standing == ReadableSecrets(0)
    assert check_secrets(standing, has_key=False).level is Level.OK
