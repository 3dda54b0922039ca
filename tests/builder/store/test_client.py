"""boto3 as the builder uses it: odd keys, listings, credentials and regions."""

import base64
import contextlib
import hashlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from builder.store import aws
from builder.store.client import S3Client
from functions.snapshot.errors import Conflict, StoreError
from functions.snapshot.layout import StoreAddress
from functions.store import s3_request
from functions.store.connection import BucketConnection, options_of
from tests.bucket import Bucket, fresh
from tests.listening import QuietHandler, listening

pytestmark = pytest.mark.shared(2)

ODD = ["a//b", "tab\there", "a b+c%41&=?#é~", "x/\x01/y", ".hidden/./x"]
EXPIRED = (
    '{"Version": 1, "AccessKeyId": "K", "SecretAccessKey": "hidden", '
    '"Expiration": "2020-01-01T00:00:00Z"}'
)
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


@pytest.fixture(params=["moto", "weed"])
def bucket(request: pytest.FixtureRequest) -> Iterator[Bucket]:
    made = fresh(request.getfixturevalue(f"{request.param}_server"))
    yield made
    made.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Give what writes ~/.aws/config and ~/.aws/credentials, with no keys but theirs."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))

    def write(config: str, secrets: str = "") -> None:
        (tmp_path / ".aws").mkdir(exist_ok=True)
        (tmp_path / ".aws" / "config").write_text(config)
        (tmp_path / ".aws" / "credentials").write_text(secrets)

    return write


def test_odd_keys_are_written_read_listed_and_removed(moto_server: str) -> None:
    client = fresh(moto_server)._client
    for key in ODD:
        client.put(key, key.encode())
    found = [one.key for one in client.list("")[0]]
    assert sorted(found) == sorted(ODD)
    for key in ODD:
        assert client.get(key)[0] == key.encode()
        assert client.piece(key, 1, 2).data == key.encode()[1:3]
    client.remove([key for key in ODD if "\x01" not in key])  # XML has no such character
    assert [one.key for one in client.list("")[0]] == ["x/\x01/y"]


def test_a_listing_of_many_pages(bucket: Bucket) -> None:
    client = bucket._client
    names = [f"in/{number} é+%41&=.warc" for number in range(5)] + ["in/x/y", "in/z/y"]
    for number, key in enumerate(names):
        client.put(key, b"x" * number)
    whole = client.list("in/")
    client.small.meta.events.register(
        "provide-client-params.s3.ListObjectsV2", lambda params, **_: {**params, "MaxKeys": 2}
    )
    assert client.list("in/") == whole
    assert sorted((one.key, one.bytes) for one in whole[0]) == list(
        zip(names, range(7), strict=True)
    )
    objects, folders = client.list("in/", "/")
    assert sorted(one.key for one in objects) == names[:5]
    assert sorted(folders) == ["in/x/", "in/z/"]


def test_a_range_behind_the_end_is_empty(bucket: Bucket) -> None:
    bucket._client.put("empty", b"")
    bucket._client.put("five", b"12345")
    assert bucket._client.piece("empty", 0, 1).data == b""
    assert bucket._client.piece("five", 9, 1).size == 5
    assert bucket._client.piece("five", 3, 9).data == b"45"
    with pytest.raises(Conflict):
        bucket._client.piece("five", 0, 1, '"another"')


def connected(**how: Any) -> Any:
    environment = how.pop("environment", KEYS)
    bucket = how.pop("bucket", "bucket")
    return aws.s3(bucket, BucketConnection(**how), environment, (5.0,))[0]


def url(client: Any) -> str:
    return str(client.generate_presigned_url("get_object", {"Bucket": "a-bucket", "Key": "k"}))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("how", "begins"),
    [
        ({}, "https://a-bucket.s3.amazonaws.com/k?"),
        ({"region": "eu-west-1"}, "https://a-bucket.s3.eu-west-1.amazonaws.com/k?"),
        ({"bucket": "a.bucket"}, "https://s3.amazonaws.com/a-bucket/k?"),
        ({"endpoint": "http://h:9000"}, "http://h:9000/a-bucket/k?"),
        ({"endpoint": "http://h:9", "addressing": "virtual"}, "http://a-bucket.h:9/k?"),
        ({"addressing": "path"}, "https://s3.amazonaws.com/a-bucket/k?"),
    ],
)
def test_buckets_are_named_by_host_or_path(
    home: Callable[..., None], how: dict[str, str], begins: str
) -> None:
    assert url(connected(**how)).startswith(begins)


def test_a_profile_gives_keys_and_region(
    home: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    home(
        "[default]\nregion = eu-west-1\n[profile work]\nregion = eu-north-1\n",
        "[default]\naws_access_key_id = D\naws_secret_access_key = d\n"
        "[work]\naws_access_key_id = W\naws_secret_access_key = w\naws_session_token = t\n",
    )
    assert "Credential=D%2F" in url(connected(environment={}))
    assert ".eu-west-1." in url(connected(environment={}))
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert "Credential=W%2F" in url(connected(environment={}))
    assert ".eu-north-1." in url(connected(environment={}))
    assert "Credential=key%2F" in url(connected())
    serving = aws.SessionEnvironment({})
    options = options_of(StoreAddress("bucket"), BucketConnection(), serving)
    assert options["region"] == "eu-north-1"
    keys = options["credential_provider"]()
    assert (keys["access_key_id"], keys["token"]) == ("W", "t")


def test_a_program_may_give_keys_that_change(home: Callable[..., None], tmp_path: Path) -> None:
    """A server asks for them again before they expire."""
    program = tmp_path / "keys.py"
    program.write_text(
        "import json, pathlib, datetime as d\n"
        f"p = pathlib.Path({str(tmp_path / 'count')!r})\n"
        "n = int(p.read_text()) + 1 if p.exists() else 1\n"
        "p.write_text(str(n))\n"
        "end = d.datetime.now(d.UTC) + d.timedelta(seconds=30)\n"
        "print(json.dumps({'Version': 1, 'AccessKeyId': f'K{n}', 'SecretAccessKey': f's{n}',"
        " 'Expiration': end.isoformat()}))\n"
    )
    home(f"[default]\ncredential_process = {sys.executable} {program}\n")
    provider = s3_request.key_provider(aws.SessionEnvironment({}))
    assert provider is not None
    first, second = provider(), provider()
    assert first["access_key_id"] != second["access_key_id"]
    for keys in (first, second):
        assert keys["secret_access_key"] == "s" + keys["access_key_id"][1:]


@pytest.mark.parametrize(
    ("config", "environment", "said"),
    [
        ("", {"AWS_PROFILE": "absent"}, r"profile \(absent\) could not be found"),
        ("no profile\nsecret = hidden\n", {}, "Unable to parse config file"),
        ("[default]\naws_access_key_id = D\n", {}, "missing: aws_secret_access_key"),
        ("[default]\ncredential_process = false\n", {}, "custom-process"),
        ("[default]\ncredential_process = echo sign in\n", {}, "Expecting value"),
        (f"[default]\ncredential_process = echo '{EXPIRED}'\n", {}, "still expired"),
        (
            "[default]\nsso_session = s\nsso_account_id = 1\nsso_role_name = r\n"
            "[sso-session s]\nsso_region = us-east-1\nsso_start_url = https://x.example\n",
            {},
            "(?i)sso|token",
        ),
        ("", {}, "no credentials: set AWS_ACCESS_KEY_ID"),
    ],
)
def test_what_keeps_keys_away_is_told_in_one_line(
    home: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    config: str,
    environment: dict[str, str],
    said: str,
) -> None:
    home(config)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    client = S3Client(
        StoreAddress("bucket"), BucketConnection(endpoint="http://127.0.0.1:9"), environment
    )
    with pytest.raises(StoreError, match=said) as caught:
        client.get("x")
    assert "\n" not in str(caught.value)
    assert "hidden" not in str(caught.value)
    if config or environment:
        with pytest.raises(StoreError) as served:
            s3_request.key_provider(aws.SessionEnvironment(environment))
        assert "\n" not in str(served.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"AWS_SECRET_ACCESS_KEY": ""}, "AWS_ACCESS_KEY_ID is set without AWS_SECRET"),
        ({"AWS_ACCESS_KEY_ID": "hid\nden"}, "AWS_ACCESS_KEY_ID has a space"),
        ({"AWS_REGION": "hid den"}, "AWS_REGION has a space"),
        ({"AWS_ENDPOINT_URL": "http://u:hidden@h"}, "AWS_ENDPOINT_URL cannot be used, expected"),
    ],
)
def test_variables_that_cannot_be_used_are_told(changes: dict[str, str], said: str) -> None:
    client = S3Client(StoreAddress("bucket"), BucketConnection(), {**KEYS, **changes})
    with pytest.raises(StoreError, match=said) as caught:
        client.get("x")
    assert "hid" not in str(caught.value)


def test_an_environment_with_keys_and_region_needs_no_boto3() -> None:
    program = (
        "import sys; from builder.store.aws import SessionEnvironment as E;"
        "from functions.store.connection import BucketConnection, options_of;"
        "from functions.snapshot.layout import StoreAddress;"
        "reached = BucketConnection(region='r');"
        f"found = options_of(StoreAddress('b-b'), reached, E({KEYS!r}));"
        "found['credential_provider']();"
        "assert not {'boto3', 'botocore'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.fixture
def recorder() -> Iterator[tuple[str, list[tuple[str, dict[str, str], bytes]]]]:
    """Give a server that answers that all of it was removed, and what it was asked."""
    seen: list[tuple[str, dict[str, str], bytes]] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = self.read_body()
            seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            gone = b"<Deleted><Key>k</Key></Deleted>" * body.count(b"<Key>")
            self.reply(200, b"<DeleteResult>" + gone + b"</DeleteResult>")

        do_GET = do_PUT = do_POST

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}", seen


def test_a_removal_has_an_md5_and_a_thousand_keys_at_most(recorder: Any) -> None:
    """Servers of older versions of S3's language want the MD5."""
    endpoint, seen = recorder
    client = S3Client(StoreAddress("bucket"), BucketConnection(endpoint=endpoint), KEYS)
    client.remove([f"k{number}" for number in range(1001)])
    assert [body.count(b"<Key>") for _, _, body in seen] == [1000, 1]
    for _, headers, body in seen:
        digest = hashlib.md5(body).digest()
        assert base64.b64decode(headers["content-md5"]) == digest


def test_a_bucket_of_everybody_is_asked_without_a_signature(recorder: Any) -> None:
    endpoint, seen = recorder
    client = S3Client(
        StoreAddress("bucket"), BucketConnection(endpoint=endpoint), {"AWS_SKIP_SIGNATURE": "true"}
    )
    client.list("")
    assert "authorization" not in seen[0][1]


@pytest.mark.parametrize("body", [b"", b"40\r\n<Error>"])
def test_a_refusal_that_breaks_off_is_told_in_one_line(body: bytes) -> None:
    """botocore reads the body of a refusal outside of its own errors."""
    sent = b"HTTP/1.1 503 Slow Down\r\nTransfer-Encoding: chunked\r\n\r\n" + body

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as connection:
                    connection.recv(65536)
                    connection.sendall(sent)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        reached = BucketConnection(endpoint=endpoint, retry_seconds=0)
        with pytest.raises(StoreError, match="0 s") as caught:
            S3Client(StoreAddress("bucket"), reached, KEYS).get("x")
    assert "\n" not in str(caught.value)
