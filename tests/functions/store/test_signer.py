"""Signed addresses, against servers that check them."""

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from functions.snapshot.errors import StoreError
from functions.store.client import Signer
from functions.store.connection import BucketConnection
from tests.bucket import Bucket, environment, fresh

KEYS = ["filesets/a/data.csv", "filesets/a b/č+&=%25?#.txt", "obi/032/184/x=y,z@1!('*)~"]
SAVED = "attachment; filename=\"d.csv\"; filename*=UTF-8''%C4%8D.csv"


@pytest.fixture(scope="module")
def bucket(weed_server: str) -> Iterator[Bucket]:
    made = fresh(weed_server)
    yield made
    made.close()


def asked(address: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    where = urlsplit(address)
    connection = http.client.HTTPConnection(where.netloc, timeout=20)
    try:
        connection.request(method, f"{where.path}?{where.query}", headers=headers)
        response = connection.getresponse()
        return response.status, dict(response.headers.items()), response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("key", KEYS)
def test_a_private_object_is_had_at_its_address_and_saved(bucket: Bucket, key: str) -> None:
    bucket._client.put(key, b"0123456789")
    signer = Signer(BucketConnection(endpoint=bucket.endpoint), environment(bucket.endpoint), 60)
    where = signer.sign(bucket.bucket, key, "GET", SAVED)
    status, headers, body = asked(where)
    assert (status, body) == (200, b"0123456789")
    assert headers["Content-Disposition"] == SAVED
    assert headers["Content-Type"] == "application/octet-stream"
    assert asked(where, Range="bytes=2-4")[::2] == (206, b"234")
    head = signer.sign(bucket.bucket, key, "HEAD", SAVED)
    status, headers, _ = asked(head, "HEAD")
    assert (status, headers["Content-Length"]) == (200, "10")


def test_nothing_else_is_to_be_had_by_it(bucket: Bucket) -> None:
    bucket._client.put("a", b"a")
    bucket._client.put("b", b"b")
    signer = Signer(BucketConnection(endpoint=bucket.endpoint), environment(bucket.endpoint), 60)
    where = signer.sign(bucket.bucket, "a", "GET", SAVED)
    assert asked(where)[0] == 200
    assert asked(where.replace("/a?", "/b?"))[0] == 403
    assert asked(where.replace("attachment", "inline"))[0] == 403
    assert asked(where, "DELETE")[0] == 403
    assert asked(where.partition("?")[0])[0] == 403


def test_it_is_good_for_so_long() -> None:
    keys = environment("http://127.0.0.1:1")
    connection = BucketConnection(endpoint="http://127.0.0.1:1", retry_seconds=0)
    where = Signer(connection, keys, 900).sign("a-bucket", "k", "GET", SAVED)
    assert "X-Amz-Expires=900&" in where


def test_without_keys_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    connection = BucketConnection(endpoint="http://127.0.0.1:1", retry_seconds=0, timeout=1)
    signer = Signer(connection, {"AWS_EC2_METADATA_DISABLED": "true"}, 60)
    with pytest.raises(StoreError):
        signer.sign("a-bucket", "k", "GET", SAVED)
