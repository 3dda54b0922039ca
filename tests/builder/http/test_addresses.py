"""Where a connection may lead to."""

import pytest

from builder.http.addresses import AnyAddresses, PublicAddresses, is_public, networks
from builder.http.errors import FetchError

PUBLIC = """
8.8.8.8 193.6.1.1 2001:4860:4860::8888 2a00:1450:4001::1
64:ff9b::808:808 ::ffff:8.8.8.8 2002:808:808::1
"""
PRIVATE = """
0.0.0.0 0.1.2.3 127.0.0.1 127.8.8.8 169.254.169.254 255.255.255.255
10.1.2.3 100.64.0.1 100.127.255.254 172.16.0.1 172.31.255.255 192.168.1.1
192.0.0.8 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9
224.0.0.1 239.255.255.250 240.0.0.1
:: ::1 fe80::1 fe80::1%lo fec0::1 fc00::1 fd12:3456::1 ff02::1 ff0e::1
100::1 2001::1 2001:db8::1 3fff::1 5f00::1 4000::1 9000::1
::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
::ffff:0:127.0.0.1 ::ffff:0:7f00:1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1
2001:0:4136:e378:8000:63bf:3fff:fdd2 2002:7f00:1:: 2002:c0a8:101::1
"""


@pytest.mark.parametrize(
    ("address", "public"),
    [*((text, True) for text in PUBLIC.split()), *((text, False) for text in PRIVATE.split())],
)
def test_public_addresses_alone_are_asked(address: str, public: bool) -> None:
    assert is_public(address) == public


def test_networks_can_be_allowed() -> None:
    allowed = networks(["127.0.0.0/8", "::1/128"])
    assert is_public("127.9.9.9", allowed)
    assert is_public("::1", allowed)
    assert is_public("::ffff:127.0.0.1", allowed)
    assert not is_public("10.0.0.1", allowed)


THIS_MACHINE = (
    "localhost",
    "api.localhost",
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "::1",
    "0177.0.0.1",
)
NAMELESS = ("no-such-host.invalid", "a" * 64 + ".example", "x..y")


@pytest.mark.parametrize(
    ("host", "port", "codes", "detail"),
    [
        # However it is written; an address is told once.
        *((host, 80, {"address-refused"}, None) for host in THIS_MACHINE),
        ("127.0.0.1", 80, {"address-refused"}, "127.0.0.1"),
        ("0", 80, {"address-refused"}, "0 is 0.0.0.0"),
        ("127.0.0.1", 22, {"port-refused"}, "127.0.0.1:22"),
        *((host, 80, {"dns"}, None) for host in NAMELESS),
        ("", 80, {"dns", "address-refused"}, None),
    ],
)
def test_what_leads_nowhere_is_refused(
    host: str, port: int, codes: set[str], detail: str | None
) -> None:
    with pytest.raises(FetchError) as told:
        PublicAddresses(frozenset({80, 443})).addresses(host, port)
    assert told.value.code in codes
    assert detail in (None, told.value.detail)


def test_a_host_that_is_named_may_be_private() -> None:
    addresses = PublicAddresses(frozenset({80}), named={"localhost"})
    assert addresses.addresses("LOCALHOST", 8080)
    with pytest.raises(FetchError):
        addresses.addresses("127.0.0.1", 8080)


@pytest.mark.parametrize("host", ["one.execute-api.localhost", "ONE.LocalHost."])
def test_a_name_below_localhost_is_this_machine(host: str) -> None:
    """As curl and browsers have it: so is an emulator's gateway reached by its own address."""
    addresses = {str(address[0]) for _, address in AnyAddresses().addresses(host, 80)}
    assert addresses
    assert addresses <= {"127.0.0.1", "::1"}
    with pytest.raises(FetchError):
        AnyAddresses().addresses("notlocalhost.invalid", 80)
