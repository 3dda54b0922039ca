"""A bucket whose server is out of order for some requests, wherever in a work they fall."""

import io
from collections.abc import Callable, Iterator

import pytest

from tests.bucket import Bucket
from tests.proxy import Answer, Fault, First, Lost, Proxy, Truncated

FAULTS = {
    "busy": Answer(503, "SlowDown"),
    "inner-error": Answer(500, "InternalError"),
    "too-many": Answer(429),
    "timed-out": Answer(400, "RequestTimeout"),
    "another-at-work": Answer(409, "ConditionalRequestConflict"),
    "lost": Lost(),
    "cut": Truncated(),
}


@pytest.fixture
def bucket(make_bucket: Callable[..., Bucket], proxy: Proxy) -> Iterator[Bucket]:
    one = make_bucket().through(proxy.url, part=5 << 20)
    yield one
    one.close()


def nth(proxy: Proxy, number: int, fault: Fault) -> First:
    """Return what gives the request of that number from now, and the next one, the fault."""
    first = len(proxy.seen) + number
    return First(fault, lambda seen: seen.number >= first, 2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(3, 7))
def test_an_upload_in_parts_whose_last_answers_are_cut_off_is_made_again(
    bucket: Bucket, proxy: Proxy, number: int
) -> None:
    large = bytes(range(256)) * (11 << 12)
    proxy.fault = nth(proxy, number, FAULTS["cut"])
    bucket.put("large", io.BytesIO(large))
    proxy.fault = lambda seen: None
    assert bucket.read("large") == large


@pytest.mark.sampled(9)
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("name", FAULTS)
def test_work_goes_through_a_fault_at_every_request(
    bucket: Bucket, proxy: Proxy, name: str, number: int
) -> None:
    large = bytes(range(256)) * (11 << 12)
    works: tuple[tuple[Callable[[], object], object], ...] = (
        (lambda: bucket.create("a", b"1"), None),  # the proof of conditions included
        (lambda: bucket.replace("a", b"2", bucket.tag("a")) == bucket.tag("a"), True),
        (lambda: bucket.put("b", io.BytesIO(b"12345")), None),
        (lambda: bucket.put("large", io.BytesIO(large)), None),
        (lambda: bucket.read("b"), b"12345"),
        (lambda: bucket.local("large").read_bytes() == large, True),
        (lambda: list(bucket.keys("")), ["a", "b", "large"]),
        (lambda: bucket.remove("b"), None),
    )
    for work, done in works:
        proxy.fault = nth(proxy, number, FAULTS[name])
        assert work() == done
        proxy.fault = lambda seen: None
    assert bucket.read("a") == b"2"
    assert list(bucket.keys("")) == ["a", "large"]
