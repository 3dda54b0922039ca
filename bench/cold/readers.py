"""Readers of S3 that the function could have in place of obstore: to measure, and no more.

Each has of functions.store.client.Client what a reader that serves calls. Neither tries anything
again, finds credentials of a container or a machine, nor says in one line what is wrong.
"""

import hashlib
import hmac
import http.client
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from functions.snapshot.errors import MissingObject, StoreError
from functions.snapshot.layout import StoreAddress
from functions.store import s3_request
from functions.store.connection import BucketConnection, ObjectPart


class _Client(ABC):
    def __init__(
        self, address: StoreAddress, connection: BucketConnection, environment: Mapping[str, str]
    ) -> None:
        self.connection = connection
        self.bucket = address.bucket
        self.environment = environment

    def where(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def get(self, key: str) -> tuple[bytes, str]:
        data, _, tag = self.fetched(key, None)
        return data, tag

    def piece(
        self,
        key: str,
        offset: int,
        length: int,
        tag: str | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> ObjectPart:
        data, size, found = self.fetched(key, f"bytes={offset}-{offset + length - 1}")
        return ObjectPart(data, size, found)

    @abstractmethod
    def fetched(self, key: str, span: str | None) -> tuple[bytes, int, str]:
        """Return bytes of an object (a range, or all), its size and its tag."""


class Signed(_Client):
    """The standard library alone: SigV4 over http.client, a connection for each thread."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._local = threading.local()
        self._host = urlsplit(self.connection.endpoint).netloc

    def fetched(self, key: str, span: str | None) -> tuple[bytes, int, str]:
        s3_request.add_to_tally(requests=1)
        path = quote(f"/{self.bucket}/{key}")
        headers = self._signed(path) | ({"Range": span} if span else {})
        if not hasattr(self._local, "connection"):
            self._local.connection = http.client.HTTPConnection(self._host, timeout=5)
        self._local.connection.request("GET", path, headers=headers)
        answer = self._local.connection.getresponse()
        data = answer.read()
        s3_request.add_to_tally(size=len(data))
        if answer.status == 404:
            raise MissingObject(self.where(key))
        if answer.status not in (200, 206):
            raise StoreError(f"{self.where(key)}: {answer.status}")
        total = (answer.getheader("Content-Range") or str(len(data))).rpartition("/")[2]
        return data, int(total), answer.getheader("ETag") or ""

    def _signed(self, path: str) -> dict[str, str]:
        when = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        empty = hashlib.sha256(b"").hexdigest()
        headers = {"host": self._host, "x-amz-content-sha256": empty, "x-amz-date": when}
        if token := self.environment.get("AWS_SESSION_TOKEN"):
            headers["x-amz-security-token"] = token
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = f"GET\n{path}\n\n{lines}\n{names}\n{empty}"
        scope = f"{when[:8]}/us-east-1/s3/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        key = ("AWS4" + self.environment["AWS_SECRET_ACCESS_KEY"]).encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        text = f"AWS4-HMAC-SHA256\n{when}\n{scope}\n{digest}"
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        who = f"{self.environment['AWS_ACCESS_KEY_ID']}/{scope}"
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={who}, SignedHeaders={names}, Signature={signature}"
        )
        return headers


class Boto(_Client):
    """boto3, as Lambda's runtime has it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        import boto3

        self._client = boto3.client(
            "s3", endpoint_url=self.connection.endpoint, region_name="us-east-1"
        )

    def fetched(self, key: str, span: str | None) -> tuple[bytes, int, str]:
        s3_request.add_to_tally(requests=1)
        given = {"Range": span} if span else {}
        try:
            answer = self._client.get_object(Bucket=self.bucket, Key=key, **given)
        except self._client.exceptions.NoSuchKey as error:
            raise MissingObject(self.where(key)) from error
        data = answer["Body"].read()
        s3_request.add_to_tally(size=len(data))
        total = answer.get("ContentRange", str(len(data))).rpartition("/")[2]
        return data, int(total), answer["ETag"]


READERS = {"signer": Signed, "boto3": Boto}
