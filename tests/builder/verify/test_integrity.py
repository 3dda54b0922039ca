"""A server that checks what it is sent: signatures, and the checksums of what arrives."""

import io
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from functions.snapshot.errors import StoreError, StoreUnavailable
from tests.bucket import Bucket, fresh
from tests.proxy import Altered, Fault, Proxy, Seen, always, proxied

DATA = bytes(range(256)) * 40_000  # more than one part of an upload in parts
WRITES: dict[str, Callable[[Bucket], object]] = {
    "put": lambda bucket: bucket.put("x", io.BytesIO(b"right")),
    "parts": lambda bucket: bucket.put("x", io.BytesIO(DATA)),
    "create": lambda bucket: bucket.create("x", b"right"),
    "replace": lambda bucket: bucket.replace("x", b"right", None),
}


@pytest.fixture
def bucket(weed_server: str) -> Iterator[Bucket]:
    with closing(fresh(weed_server)) as one:
        yield one


@pytest.fixture
def proxy(weed_server: str) -> Iterator[Proxy]:
    with proxied(weed_server) as one:
        yield one


def writes_of(seen: Seen) -> bool:
    """Tell whether a request writes the object of these tests, not that of the proof."""
    return seen.method == "PUT" and not seen.key.partition("?")[0].endswith(".conditional")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_what_arrives_otherwise_is_not_stored(
    bucket: Bucket, proxy: Proxy, write: Callable[[Bucket], object]
) -> None:
    with closing(bucket.through(proxy.url, retry_seconds=0.5, part=5 << 20)) as damaged:
        proxy.fault = lambda seen: Altered() if writes_of(seen) else None
        with pytest.raises(StoreUnavailable) as caught:
            write(damaged)
    assert "\n" not in str(caught.value)
    assert bucket.tag("x") is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_what_arrived_otherwise_once_is_sent_again(
    bucket: Bucket, proxy: Proxy, write: Callable[[Bucket], object]
) -> None:
    met: list[Seen] = []

    def first(seen: Seen) -> Fault | None:
        if writes_of(seen) and not met:
            met.append(seen)
            return Altered()
        return None

    proxy.fault = first
    with closing(bucket.through(proxy.url, part=5 << 20)) as once:
        write(once)
    assert len(met) == 1
    assert bucket.read("x") in (b"right", DATA)


def test_what_is_to_be_removed_is_signed_as_well(bucket: Bucket, proxy: Proxy) -> None:
    for key in "xy":
        bucket.put(key, io.BytesIO(b"1"))
    proxy.fault = always(Altered())
    damaged = bucket.through(proxy.url, retry_seconds=0.5)
    with closing(damaged), pytest.raises(StoreError):
        damaged.remove("x", "y")
    assert list(bucket.keys("")) == ["x", "y"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong-and-secret"}, "the secret access key is wrong"),
        ({"AWS_ACCESS_KEY_ID": "nobody-known"}, "does not know the access key"),
    ],
    ids=["secret", "key"],
)
def test_a_wrong_signature_is_refused_whatever_is_asked(
    bucket: Bucket, changes: dict[str, str], said: str
) -> None:
    bucket.put("there", io.BytesIO(DATA))
    credentials = {**bucket.environment, **changes}
    other = Bucket(bucket.endpoint, bucket.bucket, credentials=credentials, retry_seconds=0.5)
    asked = {
        "read": lambda: other.read("there"),
        "local": lambda: other.local("there", [(0, 10)]),
        "open": lambda: other.open("there"),
        "tag": lambda: other.tag("there"),
        "keys": lambda: list(other.keys("")),
        "remove": lambda: other.remove("there"),
        **{name: lambda write=write: write(other) for name, write in WRITES.items()},
    }
    with closing(other):
        for name, request in asked.items():
            with pytest.raises(StoreError, match=said) as caught:
                request()
            assert "wrong-and-secret" not in str(caught.value), name
            assert "\n" not in str(caught.value), name
    assert list(bucket.keys("")) == ["there"]
