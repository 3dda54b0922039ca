"""Credentials: the keys that a request is signed with, as they are at that moment.

What gives them may change them while this process runs. A role's, a container's of ECS and of EKS
are renewed by obstore itself; here are those of the environment, and of Lambda's SnapStart, where
an address and a password in the environment take their place.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from functions.snapshot.errors import StoreError
from functions.store import profile
from functions.store.profile import Profile

ADDRESS, PASSWORD = "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN"

_PATIENCE = 2.0  # seconds
_NEAR = ("localhost", "127.0.0.1", "::1", "169.254.170.2", "169.254.170.23", "fd00:ec2::23")
"""Hosts that are asked over http, as AWS's own tools do; keys come from no other in the clear."""


def provider(environment: Mapping[str, str], found: Profile) -> Callable[[], Any] | None:
    """Return what obstore asks for keys, None where it finds them by itself.

    `found` are those with which it begins; where they are the environment's, it goes by the
    environment at each request.
    """
    if found.access_key:
        return lambda: _given(environment, found)
    if environment.get(ADDRESS) and environment.get(PASSWORD):
        return lambda: _fetched(environment[ADDRESS], environment[PASSWORD])
    return None


def _given(environment: Mapping[str, str], found: Profile) -> dict[str, Any]:
    keys = found
    if environment.get("AWS_ACCESS_KEY_ID"):
        keys = profile.of_environment(environment)
    return {
        "access_key_id": keys.access_key,
        "secret_access_key": keys.secret_key,
        "token": keys.token or None,
        "expires_at": datetime.now(UTC),  # so it asks again, though not more often than it likes
    }


def _fetched(address: str, password: str) -> dict[str, Any]:
    """Return the keys that a server gives. Raises StoreError."""
    parts = urlsplit(address)
    if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in _NEAR):
        raise StoreError(f"{ADDRESS} cannot be used: expected https, or http on this machine")
    try:
        asked = Request(address, headers={"Authorization": password})
        # By no proxy of the environment: it would see the password, and has other machines near.
        with build_opener(ProxyHandler({})).open(asked, timeout=_PATIENCE) as answer:
            said = json.load(answer)
        return {
            "access_key_id": said["AccessKeyId"],
            "secret_access_key": said["SecretAccessKey"],
            "token": said.get("Token"),
            "expires_at": datetime.fromisoformat(said["Expiration"]),
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        # the answer itself may hold a secret
        raise StoreError(f"no credentials come from {ADDRESS}: {type(error).__name__}") from None
