"""The read path of a bucket when things go wrong: obstore's errors become a store's."""

import time
from collections.abc import Iterator

import pytest

from functions.snapshot.errors import Conflict, MissingObject, StoreError, StoreUnavailable
from functions.snapshot.layout import StoreAddress
from functions.store.client import Client
from functions.store.connection import BucketConnection
from functions.store.s3_request import ForbiddenObjectError
from tests.bucket import ACCESS_KEY, SECRET_KEY, Bucket, fresh
from tests.patience import in_real_time
from tests.proxy import Answer, Fault, Lost, Proxy, Slow, Trickle, Truncated, always

DATA = bytes(range(256)) * 8192
REFUSALS = [
    (Answer(403, "SignatureDoesNotMatch"), "the secret access key is wrong"),
    (Answer(403, "InvalidAccessKeyId"), "does not know the access key"),
    (Answer(400, "ExpiredToken"), "the credentials have expired"),
    (Answer(403, "RequestTimeTooSkewed"), "clock is wrong"),
    (Answer(301, "PermanentRedirect"), "another region; set store.region"),
    (Answer(400, "AuthorizationHeaderMalformed"), "another region; set store.region"),
    (Answer(404, "NoSuchBucket"), "there is no such bucket"),
    (Answer(501, "NotImplemented"), "lacks what Sheaf requires"),
    (Answer(401, "Unauthorized"), "does not accept these credentials"),
    (Answer(400, "InvalidRegionName"), "set store.region"),
    (Answer(418, ""), "answered 418"),
]
"""What a server refuses at once, and what is told of it, of whichever request."""


@pytest.fixture(scope="module")
def bucket(moto_server: str) -> Iterator[Bucket]:
    made = fresh(moto_server)
    made._client.put("x", DATA)
    made._client.put("empty", b"")
    yield made
    made.close()


def reader(bucket: Bucket, endpoint: str, **how: float) -> Client:
    connection = BucketConnection(endpoint=endpoint, **{"retry_seconds": 5, **how})  # type: ignore[arg-type]
    return Client(StoreAddress(bucket.bucket), connection, bucket.environment)


def test_pieces(bucket: Bucket) -> None:
    client = reader(bucket, bucket.endpoint)
    data, tag = client.get("x")
    assert data == DATA
    assert client.piece("x", 5, 7, tag).data == DATA[5:12]
    assert client.piece("x", len(DATA) - 3, 9).data == DATA[-3:]
    assert client.piece("empty", 0, 1).size == 0
    assert client.piece("x", len(DATA), 1).size == len(DATA)
    with pytest.raises(Conflict):
        client.piece("x", 0, 1, '"another"')
    with pytest.raises(MissingObject):
        client.get("y")
    assert client.has("x")
    assert not client.has("y")


@pytest.mark.parametrize(
    "fault",
    [Answer(503, "SlowDown"), Answer(429), Answer(400, "RequestTimeout"), Lost(), Truncated()],
    ids=str,
)
def test_what_passes_is_asked_again(bucket: Bucket, proxy: Proxy, fault: Fault) -> None:
    client = reader(bucket, proxy.url)
    proxy.fault = lambda seen: fault if seen.number in (0, 1, 3) else None
    assert client.get("x")[0] == DATA
    assert client.piece("x", 9, 9).data == DATA[9:18]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            Answer(403, "AccessDenied"),
            r"permission denied: .* s3:GetObject there \(and s3:ListBucket",
        ),
        *REFUSALS,
    ],
    ids=lambda value: value.code if isinstance(value, Answer) else "",
)
def test_a_refusal_is_told_at_once_and_in_one_line(
    bucket: Bucket, proxy: Proxy, answer: Answer, said: str
) -> None:
    client = reader(bucket, proxy.url)
    proxy.fault = always(answer)
    for number, request in enumerate((lambda: client.get("x"), lambda: client.piece("x", 0, 9))):
        with pytest.raises(StoreError, match=said) as caught:
            request()
        assert isinstance(caught.value, ForbiddenObjectError) == (answer.code == "AccessDenied")
        text = str(caught.value)
        assert "\n" not in text
        assert SECRET_KEY not in text
        assert ACCESS_KEY not in text
        assert len(proxy.seen) == number + 1


@in_real_time
def test_silence_and_trickles_end(bucket: Bucket, proxy: Proxy) -> None:
    impatient = reader(bucket, proxy.url, timeout=0.4, retry_seconds=0)
    for fault in (Slow(3), Trickle(20)):
        proxy.fault = always(fault)
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            impatient.get("x")
    began = time.monotonic()
    hasty = reader(bucket, proxy.url, timeout=5, longest=1, retry_seconds=0)
    proxy.fault = always(Trickle(20))
    with pytest.raises(StoreUnavailable):
        hasty.get("x")
    assert time.monotonic() - began < 10
