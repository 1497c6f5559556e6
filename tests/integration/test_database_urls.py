"""URLs of PostgreSQL as managed services give them: TLS, unix sockets, several hosts, parameters."""

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from sqlalchemy import text

from foliot.db.dialect import Pool
from foliot.db.hints import Hint, PostgresHints
from foliot.db.opening import parse_url
from foliot.instance.store import SqlStore, open_store
from foliot.model.errors import DatabaseUnreachableError
from foliot.timing.clock import SystemClock
from tests import forked_cli
from tests.engine import until
from tests.replica import ReplicaServer
from tests.servers import PostgresServer, free_port


@asynccontextmanager
async def opened(url: str, **options: str) -> AsyncIterator[SqlStore]:
    store = open_store(url, clock=SystemClock(), **options)  # type: ignore[arg-type]
    try:
        yield store
    finally:
        await store.close()


async def asked(store: SqlStore, query: str, pool: Pool = Pool.API) -> str:
    async with store.database.read(pool) as connection:
        return str((await connection.execute(text(query))).scalar_one())


def database_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port where connections are taken and nothing is ever answered."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize("pool", list(Pool))
async def test_a_unix_socket(postgres_server: PostgresServer, postgres_url: str, pool: Pool) -> None:
    where = f"host={quote(str(postgres_server.socket_folder))}&port={postgres_server.port}"
    async with opened(f"postgresql://foliot@/{database_of(postgres_url)}?{where}") as store:
        assert await asked(store, "SELECT coalesce(host(inet_client_addr()), 'socket')", pool) == "socket"


async def test_application_name_and_options_reach_the_server_in_every_pool_and_in_hints(
    postgres_url: str,
) -> None:
    asking = "application_name=shop%20one&options=-c%20statement_timeout%3D31s&channel_binding=prefer"
    url = f"{postgres_url}?{asking}"
    async with opened(url) as store:
        for pool in (Pool.WORK, Pool.API):
            assert await asked(store, "SHOW application_name", pool) == "shop one"
            assert await asked(store, "SHOW statement_timeout", pool) == "31s"
            assert await asked(store, "SHOW jit", pool) == "off"
        named = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'shop one'"
        before = int(await asked(store, named))
        hints = PostgresHints(parse_url(url))
        try:
            await hints.step()
            assert int(await asked(store, named)) == before + 1
        finally:
            await hints.close()


async def test_hints_travel_over_several_hosts(postgres_url: str) -> None:
    url = postgres_url.replace("@", f"@127.0.0.1:{free_port()},")
    one, other = PostgresHints(parse_url(url)), PostgresHints(parse_url(url))
    heard: list[str] = []
    other.listen(Hint.READY, lambda _ids: heard.append("ready"))
    try:
        await one.step()
        await other.step()
        heard.clear()
        one.send(Hint.READY)
        await one.step()
        await until(lambda: bool(heard), within_s=20)
    finally:
        await one.close()
        await other.close()


@pytest.mark.parametrize("pool", list(Pool))
async def test_the_next_host_is_taken_where_the_first_is_down(postgres_url: str, pool: Pool) -> None:
    url = postgres_url.replace("@", f"@127.0.0.1:{free_port()},")
    async with opened(url) as store:
        assert await asked(store, "SELECT 1", pool) == "1"


async def test_the_next_host_is_taken_where_the_first_does_not_answer(
    postgres_url: str, silent_port: int
) -> None:
    url = postgres_url.replace("@", f"@127.0.0.1:{silent_port},") + "?connect_timeout=1"
    async with opened(url) as store:
        assert await asked(store, "SELECT 1") == "1"


async def test_where_no_host_can_be_used_each_is_named_with_its_reason(silent_port: int) -> None:
    down = free_port()
    url = f"postgresql://127.0.0.1:{down},127.0.0.1:{silent_port}/db?connect_timeout=1"
    async with opened(url) as store:
        with pytest.raises(DatabaseUnreachableError) as caught:
            await asked(store, "SELECT 1")
    assert f"127.0.0.1:{down}" in str(caught.value)
    assert f"127.0.0.1:{silent_port} did not answer in time" in str(caught.value)


async def test_a_command_takes_such_a_url_and_names_an_unknown_parameter(
    postgres_url: str, tmp_path: Path
) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}

    def upgrade(parameters: str) -> subprocess.CompletedProcess[str]:
        url = postgres_url.replace("@", f"@127.0.0.1:{free_port()},") + parameters
        given = {**plain, "FOLIOT_DATABASE_URL": url}
        return forked_cli.run("db", "upgrade", cwd=tmp_path, env=given)

    done = await asyncio.to_thread(upgrade, "?target_session_attrs=read-write&application_name=migrator")
    assert done.returncode == 0, done.stderr
    refused = await asyncio.to_thread(upgrade, "?keepalives=1")
    assert refused.returncode != 0
    assert "FOLIOT_DATABASE_URL: unsupported parameter keepalives; supported: " in refused.stderr
    assert "Traceback" not in refused.stderr


# --- a primary and a replica ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[PostgresServer, ReplicaServer]]:
    primary = PostgresServer()
    try:
        replica = ReplicaServer(primary)
        try:
            yield primary, replica
        finally:
            replica.remove()
    finally:
        primary.remove()


@pytest.mark.parametrize(
    ("parameters", "is_replica"),
    [
        ("", False),
        ("?target_session_attrs=read-write", False),
        ("?target_session_attrs=primary", False),
        ("?target_session_attrs=any", True),
        ("?target_session_attrs=standby", True),
        ("?target_session_attrs=prefer-standby", True),
    ],
)
async def test_the_host_is_chosen_by_what_it_is(
    pair: tuple[PostgresServer, ReplicaServer], parameters: str, is_replica: bool
) -> None:
    primary, replica = pair
    url = f"postgresql://foliot@127.0.0.1:{replica.port},127.0.0.1:{primary.port}/postgres{parameters}"
    async with opened(url) as store:
        assert await asked(store, "SELECT pg_is_in_recovery()") == str(is_replica)


async def test_the_replica_may_have_several_hosts_too(pair: tuple[PostgresServer, ReplicaServer]) -> None:
    primary, replica = pair
    reading = f"postgresql://foliot@127.0.0.1:{free_port()},127.0.0.1:{replica.port}/postgres"
    async with opened(primary.url("postgres"), read_url=reading) as store:
        assert store.database.replica is not None
        async with store.database.replica.read(Pool.API) as connection:
            assert (await connection.execute(text("SELECT pg_is_in_recovery()"))).scalar_one() is True


async def test_without_a_host_that_takes_writes_the_database_counts_as_unreachable(
    pair: tuple[PostgresServer, ReplicaServer],
) -> None:
    _, replica = pair
    url = f"postgresql://foliot@127.0.0.1:{replica.port},127.0.0.1:{free_port()}/postgres"
    async with opened(url) as store:
        with pytest.raises(DatabaseUnreachableError, match="is not read-write"):
            await asked(store, "SELECT 1")


# --- TLS ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PostgresServer, Path]]:
    """A server with a certificate for 127.0.0.1 alone, and the file that it can be checked with."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a database")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    written = certificate.public_bytes(serialization.Encoding.PEM)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    root = tmp_path_factory.mktemp("tls") / "root.crt"
    root.write_bytes(written)
    server = PostgresServer()
    try:
        server.use_tls(written, key.private_bytes(*form))
        yield server, root
    finally:
        server.remove()


IS_TLS = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


@pytest.mark.parametrize("mode", ["prefer", "require", "verify-ca", "verify-full"])
async def test_a_server_whose_certificate_is_right_is_talked_to_over_tls(
    tls: tuple[PostgresServer, Path], mode: str
) -> None:
    server, root = tls
    async with opened(f"{server.url('postgres')}?sslmode={mode}&sslrootcert={root}") as store:
        assert await asked(store, IS_TLS) == "True"
    hints = PostgresHints(parse_url(f"{server.url('postgres')}?sslmode={mode}&sslrootcert={root}"))
    await hints.step()
    await hints.close()


async def test_a_server_of_another_name_is_refused_by_verify_full_alone(
    tls: tuple[PostgresServer, Path],
) -> None:
    server, root = tls
    elsewhere = server.url("postgres").replace("127.0.0.1", "localhost")
    async with opened(f"{elsewhere}?sslmode=verify-ca&sslrootcert={root}") as store:
        assert await asked(store, IS_TLS) == "True"
    async with opened(f"{elsewhere}?sslmode=verify-full&sslrootcert={root}") as store:
        with pytest.raises(DatabaseUnreachableError, match="certificate verify failed"):
            await asked(store, "SELECT 1")


async def test_a_certificate_that_the_system_does_not_know_is_refused_with_system(
    tls: tuple[PostgresServer, Path],
) -> None:
    server, _ = tls
    async with opened(f"{server.url('postgres')}?sslrootcert=system") as store:
        with pytest.raises(DatabaseUnreachableError, match="certificate verify failed"):
            await asked(store, "SELECT 1")
