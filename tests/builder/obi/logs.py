"""Logs made by hand: runs put into a store with no claim, as their rows say."""

import gzip
import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

from builder.obi import key
from builder.obi.content import Incidence, Row, Version, row_line
from builder.obi.history import LOGS, Committed
from functions.snapshot.store import Writer


def logged(store: Writer, tist: int, rows: Sequence[Row], kind: str = "ingest") -> Committed:
    """Put a log into the store and return the run that it is of."""
    data = gzip.compress(b"".join(map(row_line, rows)), mtime=0)
    store.put(key.run(tist) + LOGS[1], BytesIO(data))
    moment = datetime.fromtimestamp(tist, UTC)
    counts = Counter(row.row for row in rows)
    digest = hashlib.sha256(data).hexdigest()
    return Committed(
        tist, kind, "by hand", moment, moment, digest, len(data), None, None, "d", counts
    )


def version(tist: int, id_: str, text: str, kind: str = "tobi", **more: Any) -> Version:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Version(
        id=id_,
        kind=kind,
        key=key.key(tist, id_),
        bytes=len(text.encode()),
        md5=hashlib.md5(text.encode()).hexdigest(),
        sha256=digest,
        text_sha256=digest[::-1] if kind == "tobi" else None,
        **more,
    )


def incidence(tist: int, id_: str, what: str, kind: str = "tobi", *, again: bool = False) -> Row:
    return Incidence(id=id_, kind=kind, what=what, key=key.key(tist, id_), again=again)
