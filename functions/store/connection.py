"""How a bucket is reached: what the configuration and the environment say of it together."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from functions.config.configuration import Configuration
from functions.snapshot.address import Address
from functions.snapshot.errors import StoreError
from functions.store import credentials, profile
from functions.url import endpoint as endpoints


@dataclass(frozen=True, slots=True)
class Connection:
    """How a bucket is reached; the first four as in the configuration's section `store`.

    A request that reads or lists may last as long as `timeout` seconds without a byte, however
    slow the line, and `longest` seconds in all. One that removes or writes a small object ends
    within `timeout`; one that writes a large object, or a part of it, has ten times as long. Each
    is tried again for `retry_seconds`, and no longer than `most_seconds`; a removal for
    `removal_seconds` at most: with its last try it has to end within the minute for which an
    expiry may be sure of its leave to remove.

    What was idle for `idle` seconds is not used again: what lies between may have forgotten it, or
    this process was frozen meanwhile as AWS Lambda's are, and a request would wait for nothing.
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
    def of(
        cls,
        settings: Configuration,
        patience: float = math.inf,
        timeout: float = 30,
        longest: float = 3600,
    ) -> "Connection":
        """Return what the configuration says, with `patience` seconds of new tries at most."""
        return cls(
            settings["store.endpoint"].rstrip("/"),
            settings["store.region"],
            settings["store.addressing"],
            settings["store.retry_seconds"],
            most_seconds=patience,
            timeout=timeout,
            longest=longest,
        )

    @property
    def patience(self) -> float:
        """Seconds for which a request is tried again."""
        return min(self.retry_seconds, self.most_seconds)


def options_of(
    address: Address, connection: Connection, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return obstore's configuration of the bucket; what is not in it, obstore finds by itself.

    Keys are handed over by a function: as single options obstore would complete them by what
    else the environment holds, a session token of other keys among it. `environment` is read again
    whenever keys are needed. Raises StoreError for
    what obstore cannot use.
    """
    found = profile.load(environment)
    endpoint = connection.endpoint or _endpoint(environment)
    region = connection.region or _region(environment) or found.region
    # A name with a dot does not fit the certificate of AWS's host names.
    by_host = connection.addressing == "virtual" or (
        connection.addressing == "auto" and not endpoint and "." not in address.bucket
    )
    if by_host and endpoint:
        scheme, _, host = endpoint.partition("://")
        endpoint = f"{scheme}://{address.bucket}.{host}"
    options: dict[str, Any] = {
        "bucket": address.bucket,
        "virtual_hosted_style_request": by_host,
        "checksum_algorithm": "SHA256",
        "conditional_put": "etag",
        "endpoint": endpoint,
        "region": region,
    }
    if (provider := credentials.provider(environment, found)) is not None:
        options["credential_provider"] = provider
    return {name: value for name, value in options.items() if value != ""}


def _endpoint(environment: Mapping[str, str]) -> str:
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


def _region(environment: Mapping[str, str]) -> str:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        if value := environment.get(name):
            return profile.checked(name, value)
    return ""


def forget_empty() -> None:
    """Remove AWS's variables that are empty from this process's environment.

    obstore reads it by itself, and would take them for values, as none of AWS's tools does.
    """
    for name in [n for n, value in os.environ.items() if n.startswith("AWS_") and not value]:
        del os.environ[name]
