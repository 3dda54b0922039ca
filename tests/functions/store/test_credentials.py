"""What a server sees of the credentials, wherever they come from, and how a role's are renewed."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from functions.snapshot.errors import StoreError, StoreUnavailable
from functions.snapshot.layout import StoreAddress
from functions.store.client import Client
from functions.store.connection import BucketConnection
from tests.bucket import fresh
from tests.listening import QuietHandler, listening

ROLE = "/latest/meta-data/iam/security-credentials/"
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


@dataclass
class Machine:
    """A server that is S3 and also gives this machine its role; `broken` refuses the latter."""

    url: str = ""
    broken: int = 0
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def client(self, environment: Mapping[str, str], retry_seconds: float = 5) -> Client:
        connection = BucketConnection(endpoint=self.url, retry_seconds=retry_seconds)
        return Client(StoreAddress("bucket"), connection, {"HOME": "/nowhere", **environment})

    def signed(self) -> tuple[str, str | None]:
        """Return with which key and token the last request came."""
        headers = self.seen[-1][1]
        key = headers["authorization"].partition("Credential=")[2].partition("/")[0]
        return key, headers.get("x-amz-security-token")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine()
    with listening(_handler(machine)) as port:
        machine.url = f"http://127.0.0.1:{port}"
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", machine.url)
        yield machine


def _handler(machine: Machine) -> type[QuietHandler]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            machine.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
            if self.path.startswith(ROLE):
                expires = datetime.now(UTC) + timedelta(seconds=2)
                key = {"AccessKeyId": "role", "SecretAccessKey": "s", "Token": "t"}
                key["Expiration"] = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
                self._answer(b"name" if self.path == ROLE else json.dumps(key).encode())
            else:
                self._answer(b"hello")

        def do_PUT(self) -> None:
            machine.broken -= 1
            self._answer(b"token", 503 if machine.broken >= 0 else 200)

        def _answer(self, data: bytes, status: int = 200) -> None:
            modified = "Wed, 21 Oct 2015 07:28:00 GMT"
            self.reply(status, data, {"ETag": '"t"', "Last-Modified": modified})

    return Handler


def test_a_variable_that_is_empty_is_none(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION")
    for name in empty:
        monkeypatch.setenv(name, "")
    machine.client(dict.fromkeys(empty, "")).get("x")
    assert machine.signed() == ("role", "t")
    assert "/us-east-1/" in machine.seen[-1][1]["authorization"]


def test_a_hiccup_while_a_role_is_renewed_passes(machine: Machine) -> None:
    client = machine.client({})
    client.get("x")
    time.sleep(0.2)  # obstore asks no more often than that
    machine.broken = 2
    assert client.get("x")[0] == b"hello"
    assert machine.broken < 0


def test_a_role_that_is_not_renewed_is_told(machine: Machine) -> None:
    client = machine.client({}, retry_seconds=0.3)
    client.get("x")
    time.sleep(0.2)
    machine.broken = 1000
    with pytest.raises(
        StoreUnavailable, match=r"could not be renewed; it was retried for 0\.3 s"
    ) as told:
        client.get("x")
    assert "\n" not in str(told.value)


def test_a_machine_without_a_role_is_told_at_once(machine: Machine) -> None:
    machine.broken = 1000
    began = time.monotonic()
    with pytest.raises(StoreError, match="no credentials: set AWS_ACCESS_KEY_ID"):
        machine.client({}, retry_seconds=30).get("x")
    assert time.monotonic() - began < 5


def test_keys_that_change_in_the_environment_are_followed(machine: Machine) -> None:
    environment = {"HOME": "/nowhere", **KEYS}
    client = Client(StoreAddress("bucket"), BucketConnection(endpoint=machine.url), environment)
    client.get("x")
    assert machine.signed() == ("key", None)
    environment |= {"AWS_ACCESS_KEY_ID": "newer", "AWS_SESSION_TOKEN": "t"}
    time.sleep(0.2)  # obstore asks no more often than that
    client.get("x")
    assert machine.signed() == ("newer", "t")


@pytest.mark.parametrize("value", ["", "hid\nden"])
def test_keys_that_change_into_none_are_told_without_them(machine: Machine, value: str) -> None:
    environment = {"HOME": "/nowhere", **KEYS}
    connection = BucketConnection(endpoint=machine.url, retry_seconds=0.3)
    client = Client(StoreAddress("bucket"), connection, environment)
    client.get("x")
    environment["AWS_SECRET_ACCESS_KEY"] = value
    time.sleep(0.2)
    with pytest.raises(StoreUnavailable, match=r"^s3://bucket: AWS_\w+ (has a space|is set wit)"):
        client.get("x")
    environment |= KEYS
    time.sleep(0.2)
    assert client.get("x")[0] == b"hello"


def test_a_server_sees_that_the_keys_are_others(weed_server: str) -> None:
    """As this one does, which checks the signature of each request."""
    bucket = fresh(weed_server)
    bucket.create("x", b"hello")
    environment = {"HOME": "/nowhere", **bucket.environment}
    connection = BucketConnection(endpoint=weed_server, retry_seconds=0)
    client = Client(bucket._address, connection, environment)
    key = bucket._address.key("x")
    assert client.get(key)[0] == b"hello"
    right = environment["AWS_SECRET_ACCESS_KEY"]
    for secret in ("wrong", right, "wrong", right):
        environment["AWS_SECRET_ACCESS_KEY"] = secret
        time.sleep(0.2)
        if secret == right:
            assert client.get(key)[0] == b"hello"
        else:
            with pytest.raises(StoreError, match="the secret access key is wrong"):
                client.get(key)
    bucket.close()
