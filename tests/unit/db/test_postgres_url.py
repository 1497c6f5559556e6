"""URLs of PostgreSQL as libpq takes them: what is understood, and what is refused by name."""

from pathlib import Path

import pytest

from foliot.db.opening import READ_SETTING, parse_url
from foliot.db.postgres_url import SUPPORTED, connect_arguments, hosts_of, shown
from foliot.model.errors import SettingError


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://u:p@one/db", [("one", None)]),
        ("postgresql://u:p@one:5433/db", [("one", 5433)]),
        ("postgres://[::1]:5433/db", [("::1", 5433)]),
        ("postgresql://one:1,two:2,three/db", [("one", 1), ("two", 2), ("three", None)]),
        ("postgresql://u:p@[fd00::1]:1,two/db", [("fd00::1", 1), ("two", None)]),
        ("postgresql:///db?host=one,two&port=1,2", [("one", 1), ("two", 2)]),
        ("postgresql:///db?host=one,two&port=7", [("one", 7), ("two", 7)]),
        ("postgresql://ignored/db?host=one", [("one", None)]),
        ("postgresql://one/db?port=5433", [("one", 5433)]),
        ("postgresql:///db", []),
        ("postgresql://u@/db", []),
        ("postgresql:///db?host=/var/run/postgresql", [("/var/run/postgresql", None)]),
        ("postgresql://u@/db?host=/var/run/postgresql&port=5433", [("/var/run/postgresql", 5433)]),
        ("postgresql://%2Fvar%2Frun%2Fpostgresql/db", [("/var/run/postgresql", None)]),
    ],
)
def test_hosts_are_found_wherever_libpq_finds_them(url: str, hosts: list[tuple[str, int | None]]) -> None:
    parsed = parse_url(url)
    assert parsed.database == "db"
    assert hosts_of(parsed) == hosts


def test_user_password_and_database_may_be_parameters() -> None:
    parsed = parse_url("postgresql://one?user=ann&password=hidden&dbname=shop")
    assert (parsed.username, parsed.password, parsed.database) == ("ann", "hidden", "shop")
    assert "hidden" not in shown(parsed)


def test_a_password_may_have_the_signs_of_a_list_of_hosts() -> None:
    parsed = parse_url("postgresql://ann:a%2Cb,c%25/d@one/db")
    assert (parsed.password, hosts_of(parsed)) == ("a,b,c%/d", [("one", None)])


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ("keepalives=1", "unsupported parameter keepalives; supported: application_name, channel_binding, "),
        ("hostaddr=1.2.3.4", "unsupported parameter hostaddr"),
        ("sslmode=yes", "sslmode must be one of disable, allow"),
        ("channel_binding=require", "channel_binding=require is not supported by the driver"),
        ("channel_binding=always", "channel_binding must be one of disable, prefer"),
        ("target_session_attrs=master", "target_session_attrs must be one of any, read-write"),
        ("connect_timeout=soon", "connect_timeout must be a number"),
        ("sslrootcert=/no/such/file", "sslrootcert names no file: /no/such/file"),
        ("sslmode=require&sslrootcert=system", "sslrootcert=system needs sslmode=verify-full"),
        ("sslmode=verify-full", "sslmode=verify-full needs sslrootcert"),
        ("host=a,b,c&port=1,2", "3 hosts and 2 ports"),
        ("host=a,,c", "a host is empty"),
        ("port=0", "a port must be a number"),
        ("application_name=a&application_name=b", "application_name more than once"),
    ],
)
@pytest.mark.parametrize("setting", ["FOLIOT_DATABASE_URL", READ_SETTING])
def test_a_wrong_parameter_is_refused_by_name(
    parameters: str, told: str, setting: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(SettingError) as caught:
        parse_url(f"postgresql://ann:hidden@one/db?{parameters}", setting)
    assert str(caught.value).startswith(setting)
    assert told in str(caught.value)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://one:port/db", "postgresql://one:1,two:x/db", "postgresql:db"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="is not a database URL"):
        parse_url(url)


def test_what_asyncpg_reads_itself_reaches_it(tmp_path: Path) -> None:
    root = tmp_path / "root ca.crt"
    root.touch()
    url = parse_url(
        f"postgresql://one/db?sslmode=verify-full&sslrootcert={root}&sslpassword=hidden"
        "&application_name=shop&options=-c%20work_mem%3D8MB&channel_binding=prefer&gssencmode=disable"
    )
    arguments = connect_arguments(url, timeout=10, jit="off")
    assert arguments["dsn"].startswith("postgresql://?sslmode=verify-full&sslrootcert=")
    assert "root+ca.crt" in arguments["dsn"]
    assert "channel_binding" not in arguments["dsn"]
    assert arguments["server_settings"] == {
        "application_name": "shop",
        "options": "-c work_mem=8MB",
        "jit": "off",
    }
    assert "hidden" not in shown(url)


def test_the_system_is_asked_for_certificates_where_the_url_says_so() -> None:
    arguments = connect_arguments(parse_url("postgresql://one/db?sslrootcert=system"), timeout=10)
    assert arguments["ssl"].check_hostname
    assert "dsn" not in arguments


def test_hosts_share_the_time_and_of_several_the_primary_is_wanted() -> None:
    several = "postgresql://one,two/db"
    assert connect_arguments(parse_url(several), timeout=10)["timeout"] == 5
    assert connect_arguments(parse_url(several + "?connect_timeout=2"), timeout=10)["timeout"] == 2
    assert connect_arguments(parse_url(several), timeout=10)["wanted"] == "read-write"
    assert connect_arguments(parse_url(several), timeout=10, is_primary=False)["wanted"] == "any"
    assert connect_arguments(parse_url("postgresql://one/db"), timeout=10)["wanted"] == "any"
    asked = parse_url(several + "?target_session_attrs=prefer-standby")
    assert connect_arguments(asked, timeout=10)["wanted"] == "prefer-standby"


def test_every_supported_parameter_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
    assert [name for name in SUPPORTED if f"`{name}`" not in page] == []
