"""How a bucket is reached: what the configuration and the environment say of it together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from functions.snapshot.address import Address
from functions.snapshot.configuration import Configuration
from functions.store import profile


@dataclass(frozen=True, slots=True)
class Connection:
    """How a bucket is reached; the first four as in the configuration's section `store`.

    A request that reads or lists may last as long as `timeout` seconds without a byte, however
    slow the line. One that removes or writes a small object ends within them; one that writes a
    large object, or a part of it, has ten times as long. A removal is tried again for
    `removal_seconds` at most: with its last try it has to end within the minute for which an
    expiry may be sure of its leave to remove.
    """

    endpoint: str = ""
    region: str = ""
    addressing: str = "auto"
    retry_seconds: float = 60
    removal_seconds: float = 20
    timeout: float = 30
    part: int = 8 << 20
    concurrency: int = 4

    @classmethod
    def of(
        cls, settings: Configuration, patience: float = 3600, timeout: float = 30
    ) -> "Connection":
        """Return what the configuration says, with `patience` seconds of new tries at most."""
        return cls(
            settings["store.endpoint"].rstrip("/"),
            settings["store.region"],
            settings["store.addressing"],
            min(settings["store.retry_seconds"], patience),
            timeout=timeout,
        )


def options_of(
    address: Address, connection: Connection, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return obstore's configuration of the bucket; what is not in it, obstore finds by itself."""
    found = profile.load(environment)
    endpoint = connection.endpoint or _first(
        environment, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"
    )
    region = (
        connection.region or _first(environment, "AWS_REGION", "AWS_DEFAULT_REGION") or found.region
    )
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
        "endpoint": endpoint,
        "region": region,
        "access_key_id": found.access_key,
        "secret_access_key": found.secret_key,
        "session_token": found.token,
    }
    return {name: value for name, value in options.items() if value != ""}


def _first(environment: Mapping[str, str], *names: str) -> str:
    return next((environment[n].rstrip("/") for n in names if environment.get(n)), "")
