"""Credentials of the read path: the keys that sign a request.

obstore itself renews the keys of roles and of ECS and EKS containers. This module provides the keys
of the environment and those of Lambda's SnapStart. With SnapStart, the environment holds a URL and
a password instead of keys. boto3 handles profiles and single sign-on (builder.store.aws).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from functions.snapshot.errors import StoreError

ADDRESS, PASSWORD = "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN"

_PATIENCE = 2.0  # seconds
_NEAR = ("localhost", "127.0.0.1", "::1", "169.254.170.2", "169.254.170.23", "fd00:ec2::23")
"""Hosts that may be asked over http, as in AWS's own tools; other hosts need https."""


@dataclass(frozen=True, slots=True)
class AccessKeys:
    """AWS access keys; an empty string for a key that is not set."""

    access_key: str = ""
    secret_key: str = ""
    token: str = ""

    def __repr__(self) -> str:
        return "AccessKeys()"  # keep secrets out of logs


def of_environment(environment: Mapping[str, str]) -> AccessKeys:
    """Return the environment's keys. Raises StoreError if they are invalid."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    access_key, secret_key = (check(name, environment.get(name, "")) for name in names)
    if bool(access_key) != bool(secret_key):
        present, missing = names if access_key else reversed(names)
        raise StoreError(f"{present} is set without {missing}")
    if not access_key:
        return AccessKeys()
    name = "AWS_SESSION_TOKEN"
    return AccessKeys(access_key, secret_key, check(name, environment.get(name, "")))


def check(name: str, value: str) -> str:
    """Return the value of a variable, which may be a secret.

    Raises StoreError if no request can be signed with the value.
    """
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise StoreError(f"{name} has a space, a line break or another invalid character")
    return value


def provider(environment: Mapping[str, str]) -> Callable[[], Any] | None:
    """Return obstore's credential provider, or None if obstore finds the keys itself.

    The provider reads the environment's keys at each call. Raises StoreError if they are invalid.
    """
    if of_environment(environment).access_key:
        return lambda: _current(environment)
    if environment.get(ADDRESS) and environment.get(PASSWORD):
        return lambda: _fetch(environment[ADDRESS], environment[PASSWORD])
    return None


def _current(environment: Mapping[str, str]) -> dict[str, Any]:
    keys = of_environment(environment)
    if not keys.access_key:
        raise StoreError("AWS_ACCESS_KEY_ID is no longer set")
    return {
        "access_key_id": keys.access_key,
        "secret_access_key": keys.secret_key,
        "token": keys.token or None,
        "expires_at": datetime.now(UTC),  # obstore asks again, at its own minimum interval
    }


def _fetch(address: str, password: str) -> dict[str, Any]:
    """Return the keys that the credential server sends. Raises StoreError."""
    parts = urlsplit(address)
    if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in _NEAR):
        raise StoreError(f"{ADDRESS} cannot be used: expected https, or http on this machine")
    try:
        asked = Request(address, headers={"Authorization": password})
        # No proxy: it would see the password, and "localhost" would be the proxy's machine.
        with build_opener(ProxyHandler({})).open(asked, timeout=_PATIENCE) as answer:
            said = json.load(answer)
        return {
            "access_key_id": said["AccessKeyId"],
            "secret_access_key": said["SecretAccessKey"],
            "token": said.get("Token"),
            "expires_at": datetime.fromisoformat(said["Expiration"]),
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        # The message omits the response, which may contain a secret.
        raise StoreError(f"no credentials from {ADDRESS}: {type(error).__name__}") from None
