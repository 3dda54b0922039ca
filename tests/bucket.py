"""Servers that speak S3's language, and fresh buckets on them."""

import io
import logging
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import botocore.exceptions
import pytest
from botocore.config import Config
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from builder.store.folder import FolderStore
from builder.store.s3 import S3Store
from functions.snapshot.layout import StoreAddress
from functions.store.connection import BucketConnection
from tests.extent import PLACES
from tests.proxy import Proxy, proxied

ACCESS_KEY, SECRET_KEY = "sheaf-tests", "sheaf-tests-secret"
REGION = "us-east-1"


class Bucket(S3Store):
    """A store in a bucket of its own; `environment` lets another process use it by `uri`.

    `settings` are further fields of the connection.
    """

    def __init__(
        self,
        endpoint: str,
        bucket: str,
        prefix: str = "store",
        credentials: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        self.endpoint = endpoint
        self.bucket, self.prefix = bucket, prefix
        self.environment = environment(endpoint)
        address = StoreAddress(bucket, prefix)
        self.uri = str(address)
        connection = BucketConnection(**{"endpoint": endpoint, "retry_seconds": 10, **settings})
        super().__init__(address, connection, credentials or self.environment)

    def through(self, endpoint: str, **settings: Any) -> "Bucket":
        """Return the same bucket, reached through another endpoint."""
        return Bucket(endpoint, self.bucket, self.prefix, **settings)


def environment(endpoint: str) -> dict[str, str]:
    """Return the variables by which a process reaches the server."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "SHEAF_STORE_ENDPOINT": endpoint,
    }


@cache
def administrator(endpoint: str) -> Any:
    """Return a client that makes buckets, which Sheaf never does; to make one takes its time."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name=REGION,
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


def fresh(endpoint: str, **settings: Any) -> Bucket:
    """Return a store in a new bucket."""
    name = f"sheaf-{uuid.uuid4().hex[:12]}"
    administrator(endpoint).create_bucket(Bucket=name)
    return Bucket(endpoint, name, **settings)


class OneByOne:
    """moto's S3, which carries out one request at a time; connections there may be many.

    By itself it would look whether the condition of a write is met, and write some time after: of
    two threads that write at once both may, and neither hears of a conflict. It also closes the
    file of an object that another thread is reading. S3 promises that a write on condition is one
    step (docs/reference/store.md), and so it is here.
    """

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """Answer a request. A client that is slow to send, or to read, keeps nobody waiting."""
        body = environ["wsgi.input"]
        length = -1 if environ.get("wsgi.input_terminated") else environ.get("CONTENT_LENGTH") or 0
        environ["wsgi.input"] = io.BytesIO(body.read(int(length)))
        with self._lock:
            answer = self._moto(environ, start_response)
            try:
                return list(answer)
            finally:
                answer.close()


@pytest.fixture(scope="session")
def moto_server(servers: Callable[[str], str]) -> str:
    """Give the endpoint of moto's S3."""
    return servers("moto")


@pytest.fixture
def proxy(moto_server: str) -> Iterator[Proxy]:
    """Give a proxy before moto's S3."""
    with proxied(moto_server) as one:
        yield one


@contextmanager
def run_moto() -> Iterator[str]:
    """Run moto's S3; give its endpoint."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server(
        "127.0.0.1", 0, OneByOne(), threaded=True, request_handler=MotoRequestHandler
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def weed_server(servers: Callable[[str], str]) -> str:
    """Give the endpoint of SeaweedFS's S3, which checks signatures."""
    return servers("weed")


@pytest.fixture(params=["folder", "moto", "weed", *PLACES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FolderStore | Bucket]:
    """Give an empty store: a folder, or a bucket of a server with parts as small as may be."""
    if request.param == "folder":
        yield FolderStore(tmp_path / "store")
        return
    server = request.getfixturevalue("servers")(request.param)
    with closing(fresh(server, part=5 << 20)) as bucket:
        yield bucket


@pytest.fixture
def make_bucket(moto_server: str) -> Iterator[Callable[..., Bucket]]:
    """Give what makes a store in a fresh bucket of moto's; arguments are the connection's."""
    made: list[Bucket] = []

    def make(**settings: Any) -> Bucket:
        made.append(fresh(moto_server, **settings))
        return made[-1]

    yield make
    for bucket in made:
        bucket.close()


def answers(endpoint: str, process: subprocess.Popen[bytes]) -> bool:
    """Wait until a bucket can be made; tell if that came to be."""
    client = administrator(endpoint)
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            client.create_bucket(Bucket="first")
            client.put_object(Bucket="first", Key="x", Body=b"x")
            return True
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
            time.sleep(0.5)
    return False
