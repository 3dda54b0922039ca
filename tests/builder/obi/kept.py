"""A store with objects of three versions each, put there by runs as ingest and gather make them."""

import hashlib
import random
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from builder.obi.claim import ObiRuntime, Purpose
from builder.obi.content import Incidence, Redirect, Row, SeenRow, Version
from builder.obi.run import claim
from builder.store.folder import FolderStore
from functions.snapshot.store import Writer
from tests.builder.obi.logs import commit, describe, put

FIRST = 1_352_481_230
"""2012-11-09T17:13:50Z, the paper's own example."""
PAPER, ODD = "RePEc:aaa:ssssss:1", 'RePEc:aaa:ssssss:v:1:y:2001:i:"%/&?'
RAW = "RePEc-file:aaa/ssssss/papers.rdf"
FULL, LONG = "http://a.org/Paper%20one.pdf", f"http://a.org/{'q' * 4000}"
EMPTY, PLACE = "https://a.org/empty", "ftp://a.org/data/"
LARGE = random.Random(7).randbytes((1 << 20) + 1)
"""It is read in parts, of which the last is short."""
_FOLDER = tempfile.TemporaryDirectory(prefix="sheaf-kept-")
"""It goes when the process ends."""


@dataclass
class Kept:
    """The bytes of every version by id and, in it, by tist."""

    store: Writer
    versions: dict[str, dict[int, bytes]] = field(default_factory=dict)
    tists: list[int] = field(default_factory=list)

    def run(
        self,
        tist: int,
        stored: dict[str, bytes],
        *more: Row,
        kind: str = "ingest",
        redirects: dict[str, str] | None = None,
    ) -> None:
        """Commit a run that stores bytes by id."""
        now = datetime.fromtimestamp(tist, UTC) + timedelta(minutes=5)
        runtime = ObiRuntime(lambda: now, lambda seconds: None, lambda text: None)
        run = claim(self.store, Purpose(kind, f"of {tist}", str(tist)), runtime, tist=tist)
        run.turn()
        rows = list(self._rows(run.tist, stored, [put(run, *each) for each in stored.items()]))
        for origin, target in (redirects or {}).items():
            where = run.redirect(origin, target, 302, None)
            rows.append(Redirect(origin=origin, target=target, status=302, key=where))
        if kind == "ingest":
            documents = [(PAPER, ["RePEc:aaa:ssssss"], {"handle": PAPER})]
            commit(run, [*rows, *more], documents)
        else:
            run.commit([*rows, *more])
        self.tists.append(tist)

    def _rows(self, tist: int, stored: dict[str, bytes], keys: list[str]) -> Iterator[Row]:
        for (identifier, data), key in zip(stored.items(), keys, strict=True):
            known = self.versions.setdefault(identifier, {})
            what = "change" if known else "appearance"
            known[tist] = data
            kind = class_of(identifier)
            yield version(identifier, kind, key, data)
            if kind != "redif":
                yield Incidence(id=identifier, kind=kind, what=what, key=key)


def class_of(identifier: str) -> str:
    if identifier.startswith("RePEc-file:"):
        return "redif"
    return "tobi" if identifier.startswith("RePEc:") else "fobi"


def version(identifier: str, kind: str, key: str, data: bytes) -> Version:
    return describe(
        key,
        data,
        identifier,
        kind,
        text_sha256=hashlib.sha256(data).hexdigest() if kind == "tobi" else None,
        media_type="application/pdf" if kind == "fobi" else None,
        flags=("landing-page",) if identifier == PLACE else (),
    )


def texts(number: int) -> dict[str, bytes]:
    """Return what version `number` (1 to 3) of each object is; the third of some is the first."""
    name = f"{number % 2} é".encode()
    return {
        PAPER: b"Template-Type: ReDIF-Paper 1.0\nTitle: " + name + b"\n",
        ODD: b"Template-Type: ReDIF-Article 1.0\nTitle: %d\n" % number,
        RAW: b"\xef\xbb\xbf" + name,
        FULL: LARGE + name,
        LONG: b"%PDF-1.4 " + str(number).encode(),
        EMPTY: b"" if number == 1 else name,
        PLACE: str(number).encode(),
    }


def three(store: Writer) -> Kept:
    """Return a store with three versions of each object, a run of revisits and a loss."""
    kept = Kept(store)
    for number in (1, 2, 3):
        kept.run(FIRST + 100 * number, texts(number), redirects={"http://b.org/": PLACE})
    kept.run(
        FIRST + 400,
        {},
        *(SeenRow(id=url, kind="fobi", status=304) for url in (FULL, EMPTY)),
        kind="gather",
    )
    gone = Incidence(id=PAPER, kind="tobi", what="deletion", key="obi/gone")
    kept.run(FIRST + 500, {}, gone)
    return kept


@cache
def _made() -> Kept:
    return three(FolderStore(Path(_FOLDER.name) / "store"))


def three_in(root: Path) -> Kept:
    """Return the store of `three` in a folder, copied from one that each process makes once."""
    made = _made()
    shutil.copytree(Path(_FOLDER.name) / "store", root)
    versions = {identifier: dict(known) for identifier, known in made.versions.items()}
    return Kept(FolderStore(root), versions, list(made.tists))


def fourth(kept: Kept) -> None:
    """Add a run with a fourth version of some, and an object that was not there."""
    more = {PAPER: b"Template-Type: ReDIF-Paper 1.0\nTitle: 4\n", FULL: LARGE}
    kept.run(FIRST + 600, more | {"http://a.org/new.pdf": b"new"})
