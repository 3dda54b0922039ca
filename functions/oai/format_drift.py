"""Format drift: the publisher's templates of a format differ from this server's.

A publish with changed templates gives all records of the format a new datestamp. A server that
still runs the old templates must not answer under that datestamp: a harvester would keep the old
XML and never ask again.
"""

import logging
import threading
from collections.abc import Callable

from functions.snapshot.errors import StoreError
from functions.snapshot.manifest import Manifest

_LOG = logging.getLogger("sheaf")


class FormatDrift:
    """Compares digests of formats with those of the publisher. Thread-safe."""

    def __init__(self, digest: Callable[[str], str | None]):
        """`digest` returns the digest of a format's templates on this server, by prefix."""
        self._own = digest
        self._first: dict[str, str] = {}
        self._lock = threading.Lock()

    def check(self, manifest: Manifest, prefix: str) -> None:
        """Raise StoreError if the publisher changed the format after this server started.

        `manifest` is that of the snapshot in effect, although a list may continue in an older one.
        A format that differed at the start is logged: this server may be ahead of the publisher.
        """
        making, own = manifest.formats.get(prefix), self._own(prefix)
        if making is None or own is None:
            return
        with self._lock:
            new = prefix not in self._first
            first = self._first.setdefault(prefix, making.digest)
        if making.digest == own:
            return
        if making.digest != first:
            raise StoreError(
                f"the format {prefix} has changed in snapshot {making.snapshot}: restart this "
                "server with the templates and settings of the publisher"
            )
        if new:
            _LOG.warning(
                "the format %s differs from that of snapshot %d: run `sheaf publish`, or update "
                "this server",
                prefix, manifest.snapshot,
            )  # fmt: skip
