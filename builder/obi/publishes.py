"""Records of publishes, kept beside the runs: what a rebuild of the store from `obi/` needs.

A record says which runs a publish made visible, or which templates were withdrawn or reinstated,
and when that took effect. Publishing the same runs at the same instants gives the same items,
tombstones and datestamps again. So harvesters can go on with a rebuilt store.

Each record names the one before it and its digest, so none can be removed or altered unnoticed.
Records of Sheaf 0.2 name none; the chain begins behind them.
"""

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from builder.obi import key
from builder.obi.history import write_json
from functions.snapshot.errors import Conflict
from functions.snapshot.seal import build, refuse_damage, to_values
from functions.snapshot.store import Writer

PUBLISHES = f"{key.ROOT};publishes/"
"""Prefix of the records in the store."""
PUBLISH, WITHDRAW, REINSTATE = "publish", "withdraw", "reinstate"
KINDS = (PUBLISH, WITHDRAW, REINSTATE)
_PLACE = re.compile(re.escape(PUBLISHES) + r"[0-9]{11}(?:~([2-9]|[1-9][0-9]+))?\.json")


@dataclass(frozen=True, slots=True)
class PublishLink:
    """The record before another one: its key, and the SHA-256 of its bytes."""

    key: str
    sha256: str


@dataclass(frozen=True, slots=True)
class PublishRecord:
    """A change of templates; `effective` is the instant of its snapshot.

    `run` is the last run that a publish included, and `digest` that of its commit.json. A record
    of another kind has the identifiers of the items and, of a withdrawal, the reason. An
    interrupted change may get the instant of the next one: `number` counts the records of an
    instant from 1. `previous` is None of the first record; `is_linked` is False for a record that
    Sheaf 0.2 wrote.
    """

    kind: str
    effective: datetime
    run: int = 0
    digest: str = ""
    identifiers: tuple[str, ...] = ()
    reason: str = ""
    number: int = 1
    previous: PublishLink | None = None
    is_linked: bool = True

    @property
    def key(self) -> str:
        """The key of the record."""
        mark = f"~{self.number}" if self.number > 1 else ""
        return f"{PUBLISHES}{int(self.effective.timestamp()):011}{mark}.json"

    def document(self) -> bytes:
        """Return the record as it is stored."""
        members = to_values(self)
        del members["number"], members["is_linked"]
        if not self.is_linked:
            del members["previous"]
        return write_json(members)

    def link(self) -> PublishLink:
        """Return what the next record has as `previous`."""
        return PublishLink(self.key, hashlib.sha256(self.document()).hexdigest())


def parse_record(data: bytes, where: str) -> PublishRecord:
    """Parse the record at `where`. Raises DamagedStore."""
    with refuse_damage(where):
        members, place = json.loads(data), _PLACE.fullmatch(where)
        members |= {"number": int((place and place[1]) or 1), "is_linked": "previous" in members}
        record = build(PublishRecord, members)
        if record.kind not in KINDS or record.key != where or record.document() != data:
            raise ValueError("it is not a record of its place")
        return record


def read_record(store: Writer, where: str) -> PublishRecord:
    """Read the record at `where`. Raises DamagedStore, and MissingObject."""
    return parse_record(store.read(where), where)


def read_records(store: Writer, after: datetime | None = None) -> list[PublishRecord]:
    """Return the records after an instant, in their order. Raises DamagedStore."""
    records = [read_record(store, where) for where in store.keys(PUBLISHES)]
    return [record for record in records if after is None or record.effective > after]


def write_record(store: Writer, record: PublishRecord) -> None:
    """Store a record; one that is there stays."""
    with suppress(Conflict):
        store.create(record.key, record.document())
