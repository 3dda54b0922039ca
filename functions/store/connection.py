"""Connection settings of a bucket, from the configuration and the environment."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from functions.config.configuration import Configuration
from functions.snapshot.address import StoreAddress
from functions.snapshot.errors import StoreError
from functions.store import credentials
from functions.url import endpoint as endpoints

PATIENCE = 3.0
"""Seconds for which a request is retried while an HTTP client waits."""

SILENCE = 5.0
"""Seconds for which such a request waits for the next byte."""

LONGEST = 60.0
"""Seconds after which such a request ends, even if bytes arrive; a slow line needs 10 a page."""


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
    if (provider := credentials.provider(environment)) is not None:
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
            if not endpoints.is_valid(value):
                # The message omits the value, which may contain a password.
                raise StoreError(
                    f"{name} cannot be used, expected {endpoints.EXPECTED} such as "
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
            return credentials.check(name, value)
    return ""


def forget_empty() -> None:
    """Remove empty AWS variables from this process's environment.

    obstore reads the environment and takes an empty variable as a value, unlike AWS's own tools.
    """
    for name in [n for n, value in os.environ.items() if n.startswith("AWS_") and not value]:
        del os.environ[name]
