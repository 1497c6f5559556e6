"""The address guard: what is internal, in every spelling, and what an operator can allow."""

import socket
from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.access.address_guard import AddressGuard, Host, HttpAllow, InternalAddressError, is_internal

INTERNAL_ADDRESSES = [
    "0.0.0.0",
    "0.255.255.255",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.255",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
PUBLIC_ADDRESSES = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.1",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2003::1",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
]

INTERNAL_SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.65535",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0X7F000001",
    "0177.0.0.1",
    "0177.0.0.01",
    "0x7f.0.0.1",
    "0x7f.0x0.0x0.0x1",
    "0x7f.1",
    "0177.1",
    "127.0x1",
    "127.0.0.01",
    "127.0.0.1.",
    "127.0.0.1..",
    "0",
    "0.0.0.0",
    "00000000000",
    "0x0",
    "0x",
    "0.0",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "0xa9.254.0251.254",
    "169.254.169.254.",
    "10.1",
    "167772161",
    "012.0.0.1",
    "0xa.0.0.1",
    "172.16.1",
    "192.168.257",
    "3232235777",
    "100.64.1",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "127.0.0.%31",
    "%30x7f.1",
    "%31%30.0.0.1",
    "１２７.０.０.１",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "127．0．0．1",
    "127｡0｡0｡1",
    "１２７。１",
    "127.0.0.\u200b1",
    "12\u00ad7.1",
    "[::]",
    "[::1]",
    "::1",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:169.254.169.254]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "[fe80::1]",
    "[fe80::1%eth0]",
    "[fe80::1%25eth0]",
    "[fd00:ec2::254]",
    "[FD00:EC2::254]",
    "[ff02::1]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "a.b.localhost.",
    "localhost.localdomain",
    "ip6-localhost",
    "ip6-loopback",
    "ⓛocalhost",
    "ｌｏｃａｌｈｏｓｔ",
    "metadata.google.internal",
    "printer.local",
    "router.home.arpa",
]
MALFORMED = [
    "256.256.256.256",
    "1.2.3.4.5",
    "127.0.0.08",
    "127.0.0.256",
    "4294967296",
    "0x100000000",
    "a.1",
    "1..1",
    "[:::1]",
    "[1::2::3]",
    "[::ffff:127.0.0.01]",
    "a..b",
    "a b",
    "-a.example",
    "a-.example",
    "x" * 64,
    "a." * 127 + "example",
    "",
    ".",
    "a%2eexample",
    "a\\b",
    "a@b",
    "${secret:x}",
]


@pytest.mark.parametrize("text", INTERNAL_ADDRESSES)
def test_what_is_not_public_is_internal(text: str) -> None:
    assert is_internal(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC_ADDRESSES)
def test_public_addresses_are_not_internal(text: str) -> None:
    assert not is_internal(ip_address(text))


@pytest.mark.parametrize("host", INTERNAL_SPELLINGS)
def test_an_internal_address_is_known_in_every_spelling(host: str) -> None:
    refusal = AddressGuard().refusal_of(host)
    assert refusal is not None
    assert refusal.code == "internal_address"
    assert "FOLIOT_HTTP_ALLOW" in refusal.hint


@pytest.mark.parametrize("host", MALFORMED)
def test_what_is_neither_name_nor_address_is_refused(host: str) -> None:
    refusal = AddressGuard().refusal_of(host)
    assert refusal is not None
    assert refusal.code == "host"


@pytest.mark.parametrize("host", ["134744072", "0x08080808", "010.8.8.8", "8.8.2056", "8.8.8.8.", "８.8.8.8"])
def test_even_a_public_address_is_to_be_spelled_plainly(host: str) -> None:
    refusal = AddressGuard().refusal_of(host)
    assert refusal is not None
    assert refusal.code == "address_spelling"


@pytest.mark.parametrize(
    "host",
    [
        "agent.example",
        "AGENT.example.",
        "8.8.8.8",
        "[2001:4860:4860::8888]",
        "münchen.example",
        "xn--mnchen-3ya.de",
        "localhost.example",
        "mylocalhost",
        "1.example",
        "0x7f.example",
        "a_b.example",
        "internal.example",
    ],
)
def test_public_hosts_are_taken(host: str) -> None:
    assert AddressGuard().refusal_of(host) is None


@pytest.mark.parametrize(
    ("allow", "host"),
    [
        ("127.0.0.0/8", "127.0.0.1"),
        ("10.0.0.7", "10.0.0.7"),
        ("fd00::/8", "[fd00::1]"),
        ("::1", "[::1]"),
        ("10.0.0.0/8", "localhost"),
        ("agent.internal", "agent.internal"),
        ("Agent.Internal.", "AGENT.internal."),
        (".internal", "agent.internal"),
        (".internal", "a.b.internal"),
        (" 10.0.0.0/8 , localhost,", "localhost"),
    ],
)
def test_what_an_operator_allowed_is_taken(allow: str, host: str) -> None:
    assert AddressGuard(HttpAllow.parse(allow)).refusal_of(host) is None


@pytest.mark.parametrize(
    ("allow", "host"),
    [
        ("127.0.0.0/8", "10.0.0.1"),
        ("127.0.0.0/8", "[::1]"),
        ("127.0.0.0/8", "[::ffff:127.0.0.1]"),
        ("0.0.0.0/0", "[::1]"),
        ("127.0.0.0/8", "0x7f000001"),
        ("agent.internal", "other.internal"),
        ("agent.internal", "a.agent.internal"),
        (".internal", "internal"),
        (".internal", "xinternal.local"),
        ("", "127.0.0.1"),
    ],
)
def test_nothing_else_is(allow: str, host: str) -> None:
    assert AddressGuard(HttpAllow.parse(allow)).refusal_of(host) is not None


@pytest.mark.parametrize(
    "entry",
    [
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.1",
        "0x7f.1",
        "*.internal",
        "agent:8080",
        "http://agent",
        "a b",
        "..a",
        "[::1]",
    ],
)
def test_a_wrong_entry_of_the_allow_list_is_named(entry: str) -> None:
    with pytest.raises(ValueError) as caught:
        HttpAllow.parse(f"agent.internal,{entry}")
    assert repr(entry) in str(caught.value)


def test_one_internal_answer_among_public_ones_refuses_the_name() -> None:
    with pytest.raises(InternalAddressError) as caught:
        AddressGuard().require("agent.example", ["8.8.8.8", "10.0.0.1"])
    assert "10.0.0.1" not in str(caught.value)


def test_an_answer_with_a_zone_is_judged_too() -> None:
    with pytest.raises(InternalAddressError):
        AddressGuard().require("agent.example", ["fe80::1%2"])


def test_an_allowed_name_may_resolve_to_anything() -> None:
    guard = AddressGuard(HttpAllow.parse("agent.internal,192.168.0.0/16"))
    assert guard.require("AGENT.internal.", ["10.0.0.1"]) == [ip_address("10.0.0.1")]
    assert guard.require("agent.example", ["192.168.0.1"]) == [ip_address("192.168.0.1")]
    with pytest.raises(InternalAddressError):
        guard.require("agent.example", ["10.0.0.1"])


def test_a_host_is_read_as_resolvers_read_it() -> None:
    assert Host.read("0x7f.1") == Host("127.0.0.1", ip_address("127.0.0.1"), is_plain=False)
    assert Host.read("Agent.Example.") == Host("agent.example", None, is_plain=True)


NUMBERS = st.builds(
    lambda value, spell: spell(value),
    st.one_of(st.integers(0, 300), st.integers(0, 2**33)),
    st.sampled_from([str, hex, "0{:o}".format, "0X{:X}".format, "000{:o}".format, "0x00{:x}".format]),
)


@given(st.lists(NUMBERS, min_size=1, max_size=5).map(".".join))
def test_whatever_the_systems_resolver_takes_for_an_address_is_taken_for_the_same(text: str) -> None:
    try:
        expected = IPv4Address(socket.inet_aton(text))
    except OSError:
        with pytest.raises(ValueError):
            Host.read(text)
    else:
        assert Host.read(text).address == expected
