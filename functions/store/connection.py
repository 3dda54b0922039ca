"""How a bucket is reached: by the configuration and the environment together."""

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
"""Seconds for which a request is tried again that a client of the server waits for."""

SILENCE = 5.0
"""Seconds for which such a request waits for the next byte."""

LONGEST = 60.0
"""Seconds within which such a request ends, though bytes come: a slow line takes ten for a page."""


@dataclass(frozen=True, slots=True)
class BucketConnection:
    """How a bucket is reached; the first four as in the configuration's section `store`.

    A request waits for the next byte for `timeout` seconds, however slow the line. One that reads
    lasts `longest` seconds at most. One that writes a large object or a part has ten times
    `timeout`. Each is tried again for `retry_seconds`, and no longer than `most_seconds`. A
    removal begins its last try within `removal_seconds`: an expiry is sure of its leave to remove
    for a minute only.

    A connection that was idle for `idle` seconds is not used again. The network may have forgotten
    it, or AWS Lambda froze this process meanwhile, and a request would wait for nothing.
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
        """Return the connection that the configuration describes."""
        return cls(
            settings["store.endpoint"].rstrip("/"),
            settings["store.region"],
            settings["store.addressing"],
            settings["store.retry_seconds"],
        )

    @classmethod
    def serving(cls, settings: Configuration) -> "BucketConnection":
        """Return the same for a server, whose clients wait: it gives up soon."""
        return replace(cls.of(settings), most_seconds=PATIENCE, timeout=SILENCE, longest=LONGEST)

    @property
    def patience(self) -> float:
        """Seconds for which a request is tried again."""
        return min(self.retry_seconds, self.most_seconds)


def options_of(
    address: StoreAddress, connection: BucketConnection, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return obstore's configuration of the bucket; obstore finds by itself what is not in it.

    Keys come from a function, which reads `environment` again at each need. As single options
    obstore would complete them by the process's environment, a session token of other keys among
    it. Raises StoreError for values that obstore cannot use.
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
    """Tell whether the bucket is named in the host, and not in the path.

    A name with a dot does not fit the certificate of AWS's host names.
    """
    return connection.addressing == "virtual" or (
        connection.addressing == "auto" and not endpoint and "." not in bucket
    )


def endpoint_of(connection: BucketConnection, environment: Mapping[str, str]) -> str:
    """Return the server's URL, empty for AWS itself. Raises StoreError for an invalid one."""
    if connection.endpoint:
        return connection.endpoint
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        if value := environment.get(name):
            if not endpoints.is_valid(value):
                # not the value itself: people write passwords into it
                raise StoreError(
                    f"{name} cannot be used, expected {endpoints.EXPECTED} such as "
                    "https://s3.example.org:9000, with no user, path or query"
                )
            return value.rstrip("/")
    return ""


def region_of(connection: BucketConnection, environment: Mapping[str, str]) -> str:
    """Return the region, empty where none is named. Raises StoreError for an invalid one."""
    if connection.region:
        return connection.region
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        if value := environment.get(name):
            return credentials.check(name, value)
    return ""


def forget_empty() -> None:
    """Remove empty variables of AWS from this process's environment.

    obstore reads it by itself and takes them for values, as none of AWS's tools does.
    """
    for name in [n for n, value in os.environ.items() if n.startswith("AWS_") and not value]:
        del os.environ[name]
