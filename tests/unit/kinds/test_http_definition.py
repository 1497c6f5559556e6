"""What may be written as an HTTP target, and what is refused before it is stored."""

from typing import Any

import pytest

from foliot.access.address_guard import AddressGuard, HttpAllow
from foliot.access.secrets import SecretResolver
from foliot.kinds.http_runner import HttpRunner
from foliot.model.errors import InvalidError, Problem
from foliot.model.schedule import ScheduleSpec
from foliot.timing.clock import SystemClock


def spec_with(**target: Any) -> ScheduleSpec:
    return ScheduleSpec.parse(
        {
            "name": "nightly",
            "trigger": {"kind": "delay", "seconds": 30},
            "target": {"kind": "http", "url": "https://agent.example/run", **target},
        }
    )


def problems_with(allow: str = "", **target: Any) -> list[Problem]:
    """Everything a save would answer."""
    runner = HttpRunner(AddressGuard(HttpAllow.parse(allow)), SecretResolver(None, {}), SystemClock())
    try:
        return runner.check(spec_with(**target))
    except InvalidError as error:
        return list(error.problems)


@pytest.mark.parametrize(
    "url",
    [
        "https://agent.example",
        "HTTPS://Agent.Example:8443/a/b?c=d#e",
        "https://agent.example/${secret:path}?t=${secret:token}#${secret:x}",
        "https://agent.example?${secret:query}",
        "http://8.8.8.8/",
        "http://[2001:4860:4860::8888]:80/",
        "https://münchen.example/straße",
        "https://xn--mnchen-3ya.example/",
        "https://xn--a/",
        "https://agent.example/a@b:c",
    ],
)
def test_urls_of_public_agents_are_taken(url: str) -> None:
    assert problems_with(url=url) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "agent.example",
        "//agent.example/",
        "ftp://agent.example/",
        "file:///etc/passwd",
        "gopher://agent.example/",
        "unix:///run/docker.sock",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "http://?x",
        "https://user@agent.example/",
        "https://user:password@agent.example/",
        "https://@agent.example/",
        "https://agent.example\\@evil.example/",
        "https://agent.example\\.evil.example/",
        "https://agent.example/\r\nX-Evil: 1",
        "https://agent.example/a b",
        "https://agent.example/\0",
        "https://agent.example/\x7f",
        "https://agent.example:0/",
        "https://agent.example:65536/",
        "https://agent.example:port/",
        "https://[::1/",
        "https://${secret:host}/",
        "https://agent.${secret:domain}/",
        "https://agent.example:${secret:port}/",
        "https://agent.example${secret:rest}",
        "${secret:url}",
        "${secret:scheme}://agent.example/",
        "https://" + "a" * 4000,
    ],
)
def test_other_urls_are_refused_and_the_field_is_named(url: str) -> None:
    problems = problems_with(url=url)
    assert [problem.pointer for problem in problems] == ["/target/url"]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8080",
        "127.1",
        "0177.0.0.1",
        "0x7f000001",
        "2130706433:80",
        "0",
        "localhost",
        "a.localhost.",
        "[::1]",
        "[::]:80",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::7f00:1]",
        "[fe80::1%25eth0]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "metadata.google.internal",
        "10.0.0.1.",
        "%31%30.0.0.1",
        "１２７.０.０.１",
        "127。0。0。1",
        "ⓛocalhost",
    ],
)
def test_an_internal_address_is_refused_in_any_spelling(host: str) -> None:
    [problem] = problems_with(url=f"http://{host}/")
    assert (problem.pointer, problem.code) == ("/target/url", "internal_address")
    assert "FOLIOT_HTTP_ALLOW" in problem.hint


def test_what_an_operator_allowed_is_taken() -> None:
    assert problems_with(allow="10.0.0.0/8", url="http://10.0.0.7:8080/") == []
    assert problems_with(allow="agent.internal", url="http://agent.internal/") == []


@pytest.mark.parametrize(
    "host", ["256.1.1.1", "a..b", "-a.example", "a%2eb.example", "a_!.example", "x" * 64]
)
def test_what_is_no_host_is_refused(host: str) -> None:
    [problem] = problems_with(url=f"http://{host}/")
    assert problem.pointer == "/target/url"


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "a\r\nX-Evil: 1"},
        {"X-A": "a\nb"},
        {"X-A": "a\0b"},
        {"X-A": "a\x7fb"},
        {"X-A\r\nX-Evil": "1"},
        {"X-A\n": "1"},
        {"X A": "1"},
        {"X-Ä": "1"},
        {"": "1"},
        {":authority": "1"},
        {"X" * 201: "1"},
        {"X-A": "1", "x-a": "2"},
        {"X-A": "x" * 9000},
        {f"X-{n}": "1" for n in range(51)},
        {f"X-{n}": "x" * 8000 for n in range(5)},
        *(
            {name: "1"}
            for name in ("Host", "content-length", "Transfer-Encoding", "Connection", "Upgrade", "TE")
        ),
        *({name: "1"} for name in ("Idempotency-Key", "traceparent", "X-Foliot-Token", "x-foliot-anything")),
        *({name: "1"} for name in ("Expect", "Accept-Encoding", "Proxy-Authorization")),
    ],
)
def test_headers_that_would_break_or_replace_others_are_refused(headers: dict[str, str]) -> None:
    assert [problem.pointer for problem in problems_with(headers=headers)] == ["/target/headers"]


def test_other_headers_are_taken() -> None:
    headers = {"Authorization": "Bearer ${secret:token}", "X-Size": "größe\tx", "User-Agent": "mine"}
    assert problems_with(headers=headers) == []


@pytest.mark.parametrize("reference", ["${secret:}", "${secret:a b}", "${secret:1st}", "${secret:../a}"])
def test_a_reference_that_no_secret_can_have_is_named_where_it_stands(reference: str) -> None:
    headers = {"X~A": reference, "X-B": f"${reference}"}
    problems = problems_with(headers=headers, body={"deep": [reference]})
    assert [problem.pointer for problem in problems] == ["/target/body", "/target/headers/X~0A"]
    assert {problem.code for problem in problems} == {"secret_name"}


@pytest.mark.parametrize("expected", [[], [100], [600], ["ok"]])
def test_a_status_that_no_answer_ends_with_can_not_be_expected(expected: list[Any]) -> None:
    assert problems_with(expected_status=expected)[0].pointer.startswith("/target/expected_status")
