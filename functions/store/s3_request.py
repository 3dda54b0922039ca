"""Requests to S3: the keys that sign them, their number, and what their failures mean.

obstore itself renews the keys of roles and of ECS and EKS containers. This module provides the keys
of the environment. boto3 handles profiles and single sign-on (builder.store.aws).

A failure becomes a store error with a one-line message. Requests and the bytes of their responses
are counted for one unit of work.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from functions.snapshot.errors import (
    Conflict,
    DamagedStore,
    MissingObject,
    StoreError,
    StoreUnavailable,
)

_SECRET = re.compile(r"//[^/\s]*@")

# The HTTP status of these codes does not show that a retry can help. The request was damaged in
# transit, arrived too slowly, or collided with another one. A removal of many keys is answered with
# status 200 and a code for each key that was not removed.
_PASSING = {
    "BadDigest",
    "ConditionalRequestConflict",
    "IncompleteBody",
    "InternalError",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "XAmzContentChecksumMismatch",
    "XAmzContentSHA256Mismatch",
}

# A server may send these with status 200, or with a status chosen before the error was known.
_FINAL = {"NoSuchBucket", "NoSuchUpload", "NotImplemented", "PreconditionFailed"}

_OBJECT_CODES = {"AccessDenied", "InvalidObjectState"}  # another account's object, cold storage

_MESSAGES = {
    "NoSuchBucket": "there is no such bucket; create it, or correct the store's address",
    "InvalidBucketName": "the bucket's name is invalid; correct the store's address",
    "SignatureDoesNotMatch": "the server refuses the signature: the secret access key is wrong",
    "InvalidAccessKeyId": "the server does not know the access key; check the credentials",
    "ExpiredToken": "the credentials have expired; get new ones",
    "InvalidToken": "the session token is not valid; get new credentials",
    "RequestTimeTooSkewed": "this machine's clock is wrong by more than the server permits",
    "Unauthorized": "the server does not accept these credentials; check them",
    "AuthorizationHeaderMalformed": "the bucket is in another region; set store.region",
    "InvalidRegionName": "the server does not know this region; set store.region",
    "PermanentRedirect": "the bucket is in another region; set store.region",
    "EntityTooLarge": "the object is larger than the server permits",
    "NotImplemented": "the server lacks what Sheaf requires (docs/operations/places.md)",
}
T = TypeVar("T")


class ForbiddenObjectError(DamagedStore):
    """The server refuses this object only; others may be readable."""


class UnsupportedRequest(StoreError):
    """The server does not have this operation, or one of its headers."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failed request: the HTTP status and S3's code, if there was a response.

    `transport` is Connect, Timeout or Interrupted if the connection failed. `credentials` is true
    if no keys were available, and `reason` says why, if known. `renewing` is true if there were
    keys before. `text` is the library's own message.
    `check` is what the user may have set wrong.
    """

    status: int = 0
    code: str = ""
    transport: str = ""
    credentials: bool = False
    reason: str = ""
    renewing: bool = False
    text: str = ""
    check: str = "store.endpoint"

    @property
    def passing(self) -> bool:
        """True if the same request may succeed a little later."""
        if self.credentials:
            return self.renewing
        if self.code in _FINAL:
            return False
        busy = self.status in (408, 409, 429) or self.status in range(500, 600)
        return busy or bool(self.transport) or self.code in _PASSING

    def error(self, root: str, key: str, action: str, waited: str) -> StoreError:
        """Return the error to raise.

        `root` is the address above the key, `action` the S3 permission, `waited` the time of all
        tries.
        """
        where = f"{root}/{key}"
        if self.credentials:
            return self._explain_credentials(root, waited)
        if self.code in _MESSAGES:
            kind = UnsupportedRequest if self.code == "NotImplemented" else StoreError
            return kind(f"{where}: {_MESSAGES[self.code]}")
        if self.passing:
            tried = f"it was retried for {waited}; run again later"
            return StoreUnavailable(f"{where}: {self.describe()}; {tried}")
        if self.status == 412 or self.code == "PreconditionFailed":
            return Conflict(f"{where} was written by another process")
        if self.status == 404 or self.code == "NoSuchUpload":
            return MissingObject(f"{root} has no {key}{self.reason}")
        kind = ForbiddenObjectError if self.code in _OBJECT_CODES else StoreError
        if self.status in (401, 403) or self.code == "AccessDenied":
            # Without s3:ListBucket, S3 answers 403 for a missing object.
            hint = " (and s3:ListBucket, to distinguish missing objects)" if "Get" in action else ""
            return kind(f"{where}: permission denied: these credentials need {action} there{hint}")
        answer = f"the server answered {self.status} {self.code}".rstrip()
        text = _SECRET.sub("//...@", self.text.partition("\n")[0])[:300]
        return kind(f"{where}: {answer if self.status else text}")

    def _explain_credentials(self, root: str, waited: str) -> StoreError:
        kind = StoreUnavailable if self.renewing else StoreError
        if self.reason:
            return kind(f"{root}: {self.reason}")
        if self.renewing:
            tried = f"it was retried for {waited}; run again later"
            return kind(f"{root}: {self.describe()}; {tried}")
        return kind(
            f"{root}: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or AWS_PROFILE, or give this machine a role"
        )

    def describe(self) -> str:
        """Return why a request that may succeed later failed."""
        if self.credentials:
            return "the credentials could not be renewed"
        if self.transport == "Connect":
            return f"the server cannot be reached; check the network and {self.check}"
        if self.transport == "Timeout":
            return "the server did not answer in time"
        if self.transport:
            return "the connection to the server was lost"
        return f"the server is busy or failing ({self.status} {self.code})"


@dataclass(frozen=True, slots=True)
class AccessKeys:
    """AWS access keys; an empty string for a key that is not set."""

    access_key: str = ""
    secret_key: str = ""
    token: str = ""

    def __repr__(self) -> str:
        return "AccessKeys()"  # keep secrets out of logs


def environment_keys(environment: Mapping[str, str]) -> AccessKeys:
    """Return the environment's keys. Raises StoreError if they are invalid."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    access_key, secret_key = (check_variable(name, environment.get(name, "")) for name in names)
    if bool(access_key) != bool(secret_key):
        present, missing = names if access_key else reversed(names)
        raise StoreError(f"{present} is set without {missing}")
    if not access_key:
        return AccessKeys()
    name = "AWS_SESSION_TOKEN"
    return AccessKeys(access_key, secret_key, check_variable(name, environment.get(name, "")))


def check_variable(name: str, value: str) -> str:
    """Return the value of a variable, which may be a secret.

    Raises StoreError if no request can be signed with the value.
    """
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise StoreError(f"{name} has a space, a line break or another invalid character")
    return value


def key_provider(environment: Mapping[str, str]) -> Callable[[], Any] | None:
    """Return obstore's credential provider, or None if obstore finds the keys itself.

    The provider reads the environment's keys at each call. Raises StoreError if they are invalid.
    """
    return partial(_provide_keys, environment) if environment_keys(environment).access_key else None


def _provide_keys(environment: Mapping[str, str]) -> dict[str, Any]:
    keys = environment_keys(environment)
    if not keys.access_key:
        raise StoreError("AWS_ACCESS_KEY_ID is no longer set")
    return {
        "access_key_id": keys.access_key,
        "secret_access_key": keys.secret_key,
        "token": keys.token or None,
        "expires_at": datetime.now(UTC),  # obstore asks again, at its own minimum interval
    }


class Tally:
    """Number of requests, retries included, and the bytes of their responses."""

    def __init__(self) -> None:
        self.requests = 0
        self.bytes = 0
        self._lock = threading.Lock()

    def add(self, requests: int, size: int) -> None:
        """Count requests and bytes, from any thread."""
        with self._lock:
            self.requests += requests
            self.bytes += size


_CURRENT: ContextVar[Tally | None] = ContextVar("tally", default=None)


@contextmanager
def count_requests() -> Iterator[Tally]:
    """Count the requests of this thread, and of calls passed to other threads by `carry_tally`."""
    tally = Tally()
    token = _CURRENT.set(tally)
    try:
        yield tally
    finally:
        _CURRENT.reset(token)


def add_to_tally(requests: int = 0, size: int = 0) -> None:
    """Count requests and bytes for the current unit of work, if it is counted."""
    tally = _CURRENT.get()
    if tally is not None:
        tally.add(requests, size)


def carry_tally(call: Callable[..., T]) -> Callable[..., T]:
    """Return a call that counts for this thread's work when another thread runs it.

    Each call in another thread needs a `carry_tally` of its own.
    """
    return partial(copy_context().run, call)
