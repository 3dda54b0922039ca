"""A client of S3: requests one by one, tried again in time. The only file that imports obstore.

What a server says comes as obstore's text; here it becomes an error of the store, in one line.
"""

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from functions.snapshot.address import Address
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.store import tally
from functions.store.connection import Connection, forget_empty, options_of
from functions.store.object import Listed, Piece, tag_of
from functions.store.refusal import Refusal

T = TypeVar("T")

FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds between two tries of a request
_FIRST, _LONGEST = timedelta(seconds=FIRST_WAIT), timedelta(seconds=LONGEST_WAIT)
_CHUNK = 1 << 16  # bytes
_SIGNED = timedelta(minutes=5)
_ONCE: dict[str, Any] = {"max_retries": 0}

_OURS = (BaseError, FileNotFoundError, ValueError, OSError)  # what obstore raises


class Client:
    """Requests to one bucket, by the bucket's own keys. Safe to use from threads.

    Every method tries again what may come right (see Refusal.passing) until `retry_seconds` are
    over, and raises MissingObject, Conflict, StoreUnavailable or StoreError.
    """

    def __init__(
        self, address: Address, connection: Connection, environment: Mapping[str, str]
    ) -> None:
        self.connection = connection
        self._bucket = address.bucket
        self._answered = False
        self._options = options_of(address, connection, environment)
        forget_empty()

    def where(self, key: str) -> str:
        """Return how an object is named to a person."""
        return f"s3://{self._bucket}/{key}"

    def get(self, key: str) -> tuple[bytes, str]:
        """Return the whole object and its tag."""

        def request() -> tuple[bytes, str]:
            result = obstore.get(self._reads, key)
            return _body(result), tag_of(result.meta)

        return self.tried(key, "s3:GetObject", request)

    def piece(
        self,
        key: str,
        offset: int,
        length: int,
        tag: str | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Piece:
        """Return `length` bytes from `offset`, or fewer where the object ends before.

        Raises Conflict if the object's tag is not `tag` any more, and StoreError soon after
        `stopped` is true.
        """

        def request() -> Piece:
            options: dict[str, Any] = {"range": (offset, offset + length)}
            if tag is not None:
                options["if_match"] = tag
            try:
                result = obstore.get(self._reads, key, options=options)  # type: ignore[arg-type]
                return Piece(_body(result, stopped), result.meta["size"], tag_of(result.meta))
            except _OURS as error:
                if Refusal.of(error).status != 416:
                    raise
                tally.add(requests=1)
                meta = obstore.head(self._reads, key)  # nothing lies there: an empty object?
                return Piece(b"", meta["size"], tag_of(meta))

        return self.tried(key, "s3:GetObject", request)

    def has(self, key: str) -> bool:
        """Tell whether there is such an object."""
        try:
            self.piece(key, 0, 1)  # unlike a HEAD's, the answer says why it is a refusal
        except MissingObject:
            return False
        return True

    def put(self, key: str, data: bytes) -> None:
        """Write an object in one request."""
        self.tried(key, "s3:PutObject", lambda: self._put(self._long, key, data, "overwrite"))

    def put_if(self, key: str, data: bytes, tag: str | None) -> str:
        """Write an object if its tag is `tag` (None: if there is none), and return its new tag.

        An answer can be lost although the write took place; the condition then fails when the
        request is made again. So what is there is read, and if it is what was to be written, it
        is taken for ours. Raises Conflict.
        """
        mode: Any = "create" if tag is None else {"e_tag": tag}
        tries = 0

        def request() -> str:
            nonlocal tries
            tries += 1
            return self._put(self._short, key, data, mode)

        try:
            return self.tried(key, "s3:PutObject", request)
        except MissingObject:
            raise Conflict(f"{self.where(key)} was removed by somebody else") from None
        except Conflict:
            if tries > 1:
                try:
                    found, now = self.get(key)
                except MissingObject:
                    raise Conflict(f"{self.where(key)} was removed by somebody else") from None
                if found == data:
                    return now
            raise

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """Write an object out of a file, held in no memory, if there is none. Raises Conflict."""
        from functions.store import signed

        md5 = signed.digest(path)

        def request() -> None:
            where = obstore.sign(self._short, "PUT", key, _SIGNED)
            signed.upload(where, path, md5, self.connection.timeout * 10)

        self.tried(key, "s3:PutObject", request)

    def put_parts(self, key: str, source: BinaryIO) -> None:
        """Write a large object in parts, of which `concurrency` are in memory at a time."""
        import asyncio  # not where requests are answered: it takes a cold start 20 ms

        start = source.tell()

        async def request() -> None:
            source.seek(start)
            await obstore.put_async(
                self._parts,
                key,
                source,
                use_multipart=True,
                chunk_size=self.connection.part,
                max_concurrency=self.connection.concurrency,
            )

        # unlike a call that waits, this hears Ctrl-C
        self.tried(key, "s3:PutObject", lambda: asyncio.run(request()))

    def list(self, prefix: str) -> list[Listed]:
        """Return what lies below `prefix`, which is empty or ends with `/`."""
        import asyncio

        async def request() -> Sequence[Any]:
            return await obstore.list(self._lists, prefix or None).collect_async()

        found = self.tried(prefix, "s3:ListBucket", lambda: asyncio.run(request()))
        return [Listed(m["path"], m["size"], m["last_modified"]) for m in found]

    def folders(self, prefix: str) -> Sequence[str]:
        """Return what lies directly below `prefix`: keys, and prefixes with `/` at the end."""
        found = self.tried(
            prefix, "s3:ListBucket", lambda: obstore.list_with_delimiter(self._lists, prefix)
        )
        return [f"{p}/" for p in found["common_prefixes"]] + [m["path"] for m in found["objects"]]

    def address(self, method: Any, key: str, query: str, lasting: timedelta = _SIGNED) -> str:
        """Return the address that a request with a query is signed for, for that long.

        obstore signs no queries; but what stands in the endpoint it signs, and adds a `/`.
        """
        plain = obstore.sign(self._short, "GET", key, _SIGNED).partition("?")[0].rstrip("/")
        options = {**self._options, "endpoint": f"{plain}?{query}"}
        options["virtual_hosted_style_request"] = True
        return str(obstore.sign(S3Store(**options), method, "", lasting))

    def remove(self, keys: Sequence[str]) -> None:
        """Remove the objects, a thousand with each request; one that is not there is no error."""
        where = keys[0] if len(keys) == 1 else f"{keys[0]} and {len(keys) - 1} more"
        self.tried(
            where,
            "s3:DeleteObject",
            lambda: obstore.delete(self._short, list(keys)),
            self.connection.removal_seconds,
        )

    # Each is made when it is first needed. Requests made one by one are tried again in tried, so
    # that Ctrl-C is heard while waiting and so that it is known whether a write was tried twice.
    # Where obstore makes several by itself, in parts and pages, it tries each of them again, but
    # not what breaks off or what only S3's code tells to be passing: then all of it is done again.

    @cached_property
    def _reads(self) -> S3Store:
        return self._store(_ONCE, self.connection.longest, self.connection.timeout)

    @cached_property
    def _lists(self) -> S3Store:
        return self._store(self._patient(), self.connection.longest, self.connection.timeout)

    @cached_property
    def _short(self) -> S3Store:
        return self._store(_ONCE, self.connection.timeout)

    @cached_property
    def _long(self) -> S3Store:
        return self._store(_ONCE, self.connection.timeout * 10)

    @cached_property
    def _parts(self) -> S3Store:
        return self._store(self._patient(), self.connection.timeout * 10)

    def _patient(self) -> dict[str, Any]:
        return {
            "max_retries": 1000,
            "retry_timeout": timedelta(seconds=self.connection.patience),
            "backoff": {"init_backoff": _FIRST, "max_backoff": _LONGEST, "base": 2},
        }

    def _store(self, retry: Any, whole: float, silence: float | None = None) -> S3Store:
        """Return what makes requests of `whole` seconds at most.

        With `silence`, one that gets no byte for so long ends as well: an upload gets none for
        all its length.
        """
        client: Any = {
            "allow_http": str(self._options.get("endpoint", "")).startswith("http://"),
            "connect_timeout": timedelta(seconds=min(5.0, self.connection.timeout)),
            "timeout": timedelta(seconds=whole),
            "pool_idle_timeout": timedelta(seconds=self.connection.idle),
        }
        if silence is not None:
            client["read_timeout"] = timedelta(seconds=silence)
        return S3Store(**self._options, client_options=client, retry_config=retry)

    def _put(self, store: S3Store, key: str, data: bytes, mode: Any) -> str:
        return tag_of(obstore.put(store, key, data, mode=mode, use_multipart=False))

    def tried(self, key: str, action: str, request: Callable[[], T], most: float = math.inf) -> T:
        """Make a request until it is answered, for `retry_seconds`, and no longer than `most`."""
        patience = min(self.connection.patience, most)
        waited = f"{patience:g} s"
        if patience == self.connection.retry_seconds:
            waited += " (store.retry_seconds)"
        end = time.monotonic() + patience
        wait = FIRST_WAIT
        while True:
            tally.add(requests=1)
            try:
                found = request()
                self._answered = True
                return found
            except _OURS as error:
                said = Refusal.of(error, renewing=self._answered)
                self._answered |= bool(said.status) and not said.credentials
                now = time.monotonic()
                if not said.passing or now >= end:
                    raise said.error(self._bucket, key, action, waited) from error
            # Many clients that were refused at once must not all come back at once.
            time.sleep(min(random.uniform(wait / 2, wait), max(0.0, end - now)))
            wait = min(wait * 2, LONGEST_WAIT)


def _body(result: Any, stopped: Callable[[], bool] = lambda: False) -> bytes:
    """Return what comes, in parts: between them Ctrl-C is heard, however slow the line."""
    found = bytearray()
    for part in result.stream(min_chunk_size=_CHUNK):
        if stopped():
            raise StoreError("nobody waits for it any more")
        tally.add(size=len(part))
        found += part
    return bytes(found)
