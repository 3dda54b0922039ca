"""Base class of the bucket clients: retries requests and translates errors into store errors."""

import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from functions.snapshot.errors import MissingObject, StoreError
from functions.store import tally
from functions.store.connection import BucketConnection
from functions.store.refusal import Refusal

T = TypeVar("T")

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds between two tries of a request


@dataclass(frozen=True, slots=True)
class ObjectPart:
    """A range of an object: its bytes, and the size and the ETag of the whole object."""

    data: bytes
    size: int
    tag: str


class ObjectClient(ABC):
    """Reads the objects of a bucket by their keys in the bucket. Thread-safe.

    Every method retries temporary errors (see Refusal.passing) until `retry_seconds` are over.
    Raises MissingObject, Conflict, StoreUnavailable or StoreError.
    """

    def __init__(self, bucket: str, connection: BucketConnection) -> None:
        self.connection = connection
        self._bucket = bucket
        self._answered = False

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
        return f"s3://{self._bucket}/{key}"

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
        end = time.monotonic() + patience
        wait = _FIRST_WAIT
        while True:
            tally.add(requests=1)
            try:
                found = request()
                self._answered = True
                return found
            except Exception as error:
                refusal = self.refusal(error)
                if refusal is None:
                    raise
                refusal = replace(refusal, renewing=self._answered)
                self._answered |= bool(refusal.status) and not refusal.credentials
                now = time.monotonic()
                if not refusal.passing or now >= end:
                    waited = self._waiting_time(patience)
                    raise refusal.error(self._bucket, key, action, waited) from error
            # Random waits keep clients that were refused together from returning together.
            time.sleep(min(random.uniform(wait / 2, wait), max(0.0, end - now)))
            wait = min(wait * 2, _LONGEST_WAIT)

    def _waiting_time(self, patience: float) -> str:
        own = " (store.retry_seconds)" if patience == self.connection.retry_seconds else ""
        return f"{patience:g} s{own}"


def tag_of(tag: str | None) -> str:
    """Return an object's ETag. Raises StoreError if it is missing."""
    if not tag:
        raise StoreError("the server gives objects no ETag, which docs/reference/store.md requires")
    return tag
