"""Where a connection may lead to."""

import pytest

from builder.http.addresses import PublicAddresses, is_public, networks
from builder.http.errors import FetchError

PUBLIC = [
    "8.8.8.8",
    "193.6.1.1",
    "2001:4860:4860::8888",
    "2a00:1450:4001::1",
    "64:ff9b::808:808",
    "::ffff:8.8.8.8",
    "2002:808:808::1",
]
PRIVATE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.1.2.3",
    "100.64.0.1",
    "100.127.255.254",
    "127.0.0.1",
    "127.8.8.8",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:c0a8:101::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "::ffff:0:127.0.0.1",
    "::ffff:0:7f00:1",
    "4000::1",
    "9000::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_asked(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_no_other_address_is(address: str) -> None:
    assert not is_public(address)


def test_networks_can_be_allowed() -> None:
    allowed = networks(["127.0.0.0/8", "::1/128"])
    assert is_public("127.9.9.9", allowed)
    assert is_public("::1", allowed)
    assert is_public("::ffff:127.0.0.1", allowed)
    assert not is_public("10.0.0.1", allowed)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "0x7f.0.0.1", "2130706433", "0", "::1", "0177.0.0.1"],
)
def test_what_names_this_machine_is_refused_however_it_is_written(host: str) -> None:
    with pytest.raises(FetchError) as told:
        PublicAddresses(frozenset({80})).addresses(host, 80)
    assert told.value.code == "address-refused"


@pytest.mark.parametrize(("host", "detail"), [("127.0.0.1", "127.0.0.1"), ("0", "0 is 0.0.0.0")])
def test_an_address_is_told_once(host: str, detail: str) -> None:
    with pytest.raises(FetchError) as told:
        PublicAddresses(frozenset({80})).addresses(host, 80)
    assert told.value.detail == detail


def test_ports() -> None:
    with pytest.raises(FetchError) as told:
        PublicAddresses(frozenset({80, 443})).addresses("127.0.0.1", 22)
    assert told.value.code == "port-refused"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".example", "", "x..y"])
def test_a_name_without_address(host: str) -> None:
    with pytest.raises(FetchError) as told:
        PublicAddresses(frozenset({80})).addresses(host, 80)
    assert told.value.code in {"dns", "address-refused"}
