"""Connections to a bucket: their settings, and the base class of the clients.

The settings come from the configuration and the environment. The base class retries requests and
translates errors into store errors.
"""

import logging
import math
import os
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from functions.config.configuration import Configuration
from functions.snapshot import authority as endpoints
from functions.snapshot.errors import MissingObject, StoreError
from functions.snapshot.layout import StoreAddress
from functions.store import s3_request
from functions.store.s3_request import Refusal

PATIENCE = 3.0
"""Seconds for which a request is retried while an HTTP client waits."""

SILENCE = 5.0
"""Seconds for which such a request waits for the next byte."""

LONGEST = 60.0
"""Seconds after which such a request ends, even if bytes arrive; a slow line needs 10 a page."""
T = TypeVar("T")

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds between two tries of a request
_ANNOUNCED, _QUIET = 4.0, 24.0  # seconds until retries are announced, and between two lines
_LOG = logging.getLogger("sheaf")


@dataclass(frozen=True, slots=True)
class BucketConnection:
    """Connection settings of a bucket; the first four are keys of the section `store`.

    A request waits up to `timeout` seconds for the next byte, on a line of any speed. A read
    request lasts at most `longest` seconds. Writing a large object or a part may take ten times
    `timeout`. Each request is retried for `retry_seconds`, but no longer than `most_seconds`. A
    removal begins its last try within `removal_seconds`: an expiry holds its permission to remove
    for one minute.

    A connection that was idle for `idle` seconds is not used again. The network may have dropped
    it, or AWS Lambda may have frozen the process meanwhile. A request on it would hang.
    """

    endpoint: str = ""
    region: str = ""
    addressing: str = "auto"
    retry_seconds: float = 60
    most_seconds: float = math.inf
    removal_seconds: float = 20
    timeout: float = 30
    longest: float = 3600
    idle: float = 10
    part: int = 8 << 20
    concurrency: int = 4

    @classmethod
    def of(cls, settings: Configuration) -> "BucketConnection":
        """Return the connection settings in the configuration."""
        return cls(
            settings["store.endpoint"].rstrip("/"),
            settings["store.region"],
            settings["store.addressing"],
            settings["store.retry_seconds"],
        )

    @classmethod
    def serving(cls, settings: Configuration) -> "BucketConnection":
        """Return the same for a server: its clients wait, so it gives up soon."""
        return replace(cls.of(settings), most_seconds=PATIENCE, timeout=SILENCE, longest=LONGEST)

    @property
    def patience(self) -> float:
        """Seconds for which a request is retried."""
        return min(self.retry_seconds, self.most_seconds)


def options_of(
    address: StoreAddress, connection: BucketConnection, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return obstore's options for the bucket; obstore finds missing ones itself.

    The keys come from a function that reads `environment` again at each call. If they were given as
    single options, obstore would complete them from the process's environment. A session token of
    other keys could then be added. Raises StoreError for values that obstore cannot use.
    """
    endpoint = endpoint_of(connection, environment)
    by_host = is_by_host(address.bucket, connection, endpoint)
    if by_host and endpoint:
        scheme, _, host = endpoint.partition("://")
        endpoint = f"{scheme}://{address.bucket}.{host}"
    options: dict[str, Any] = {
        "bucket": address.bucket,
        "virtual_hosted_style_request": by_host,
        "endpoint": endpoint,
        "region": region_of(connection, environment),
    }
    if (provider := s3_request.key_provider(environment)) is not None:
        options["credential_provider"] = provider
    return {name: value for name, value in options.items() if value != ""}


def is_by_host(bucket: str, connection: BucketConnection, endpoint: str) -> bool:
    """Return whether the bucket's name is in the host instead of the path.

    A name with a dot does not match the certificate of AWS's host names.
    """
    return connection.addressing == "virtual" or (
        connection.addressing == "auto" and not endpoint and "." not in bucket
    )


def endpoint_of(connection: BucketConnection, environment: Mapping[str, str]) -> str:
    """Return the server's URL, empty for AWS. Raises StoreError if it is invalid."""
    if connection.endpoint:
        return connection.endpoint
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        if value := environment.get(name):
            if not endpoints.is_endpoint(value):
                # The message omits the value, which may contain a password.
                raise StoreError(
                    f"{name} cannot be used, expected {endpoints.ENDPOINT_EXPECTED} such as "
                    "https://s3.example.org:9000, without user, path or query"
                )
            return value.rstrip("/")
    return ""


def region_of(connection: BucketConnection, environment: Mapping[str, str]) -> str:
    """Return the region, empty if it is not set. Raises StoreError if it is invalid."""
    if connection.region:
        return connection.region
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        if value := environment.get(name):
            return s3_request.check_variable(name, value)
    return ""


def forget_empty() -> None:
    """Remove empty AWS variables from this process's environment.

    obstore reads the environment and takes an empty variable as a value, unlike AWS's own tools.
    """
    for name in [n for n, value in os.environ.items() if n.startswith("AWS_") and not value]:
        del os.environ[name]


@dataclass(frozen=True, slots=True)
class ObjectPart:
    """A range of an object: its bytes, and the size and the ETag of the whole object."""

    data: bytes
    size: int
    tag: str


class ObjectClient(ABC):
    """Reads objects by their keys in a bucket or below a URL. Thread-safe.

    Every method retries temporary errors (see Refusal.passing) until `retry_seconds` are over.
    Raises MissingObject, Conflict, StoreUnavailable or StoreError.
    """

    def __init__(self, root: str, connection: BucketConnection) -> None:
        """`root` is the address that all keys are below, such as s3://bucket."""
        self.connection = connection
        self._root = root
        self._answered = False
        self._next_line = -math.inf

    @abstractmethod
    def get(self, key: str) -> tuple[bytes, str]:
        """Return the whole object and its tag."""

    @abstractmethod
    def piece(
        self,
        key: str,
        offset: int,
        length: int,
        tag: str | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> ObjectPart:
        """Return `length` bytes from `offset`, or fewer at the end of the object.

        Raises Conflict if the object's tag is no longer `tag`, and StoreError soon after `stopped`
        returns true.
        """

    @abstractmethod
    def refusal(self, error: Exception) -> Refusal | None:
        """Return the Refusal that describes an error of the library; None for any other error."""

    def where(self, key: str) -> str:
        """Return an object's address for messages."""
        return f"{self._root}/{key}"

    def has(self, key: str) -> bool:
        """Return whether the object exists."""
        try:
            self.piece(key, 0, 1)  # the response to a HEAD would not give the reason of a refusal
        except MissingObject:
            return False
        return True

    def attempt(self, key: str, action: str, request: Callable[[], T], most: float = math.inf) -> T:
        """Retry a request until it succeeds, for `retry_seconds` or `most` seconds at most."""
        patience = min(self.connection.patience, most)
        begun = time.monotonic()
        end = begun + patience
        wait = _FIRST_WAIT
        while True:
            s3_request.add_to_tally(requests=1)
            try:
                outcome = request()
                self._answered = True
                return outcome
            except Exception as error:
                refusal = self.refusal(error)
                if refusal is None:
                    raise
                refusal = replace(refusal, renewing=self._answered)
                self._answered |= bool(refusal.status) and not refusal.credentials
                now = time.monotonic()
                if not refusal.passing or now >= end:
                    is_own = patience == self.connection.retry_seconds
                    waited = f"{patience:g} s{' (store.retry_seconds)' if is_own else ''}"
                    raise refusal.error(self._root, key, action, waited) from error
            if now > max(begun + _ANNOUNCED, self._next_line):
                self._next_line = now + _QUIET
                reason, left = refusal.describe(), end - now
                _LOG.warning("%s: %s; trying again for up to %.0f s", self._root, reason, left)
            # Random waits keep clients that were refused together from returning together.
            time.sleep(min(random.uniform(wait / 2, wait), max(0.0, end - now)))
            wait = min(wait * 2, _LONGEST_WAIT)


def tag_of(tag: str | None) -> str:
    """Return an object's ETag. Raises StoreError if it is missing."""
    if not tag:
        raise StoreError("the server gives objects no ETag, which docs/reference/store.md requires")
    return tag
