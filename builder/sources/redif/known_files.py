"""Known files: what the last ingest of the same folders found in files that have not changed.

Such a file is read again only if the store lacks it, or if one of its templates gets a new version.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from builder import distribution
from builder.snapshot.sql import Statements
from builder.sources.redif.listing import FoundFile, Listings
from builder.sources.redif.staging import ALL_READ
from builder.store.durable import digest_file, writing
from builder.store.parquet.writer import RowWriter, parse_columns
from builder.store.workdir import KNOWN_PREFIX
from functions.snapshot.seal import build, check_seal, seal
from functions.store import engine

_SQL = Statements(__file__)
_FORMAT = 3  # of the tables in the folder
_SETTLED = 5  # seconds by which a file must be older than the begin of its ingest
_MOST_DOUBTED = 10_000
_BEGUN, _FACTS, _LISTINGS, _GONE = "begun", "facts.json", "listings", "gone.parquet"
_GONE_COLUMNS = parse_columns("source INTEGER, path VARCHAR")


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of the last ingest, such as its next ordinal."""

    following: int = 0
    doubted: frozenset[str] = frozenset()
    """Files that could not be read, by source, folder and name."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of each other file of the folder, by name."""


class KnownFiles:
    """The known files of an ingest that is identified by `request`; `home` holds their folder."""

    def __init__(self, home: Path, request: str, *, trust: bool = True) -> None:
        """Without `trust`, no file is known, but those that are read now will be."""
        identity = f"{distribution.version()} {_FORMAT} {request}".encode(
            "utf-8", "surrogateescape"
        )
        self._folder = home / (KNOWN_PREFIX + hashlib.sha256(identity).hexdigest()[:16])
        self._draft = self._folder.with_name(f"{self._folder.name}.{os.getpid()}")
        self._facts = _read_facts(self._folder) if trust else None
        self._doubted: set[str] = set()
        self._changed = False
        with writing(self._draft):
            shutil.rmtree(self._draft, ignore_errors=True)
            self._draft.mkdir(parents=True)
            (self._draft / _BEGUN).touch()
            begun = int((self._draft / _BEGUN).stat().st_mtime)
            self._gone = RowWriter(self._draft / _GONE, _GONE_COLUMNS)
            self._listings = Listings(
                None if self._facts is None else self._folder / _LISTINGS,
                self._draft / _LISTINGS,
                begun - _SETTLED,
                self._facts.doubted if self._facts else (),
            )

    @property
    def skipped(self) -> int:
        """Number of files that need not be read."""
        return self._listings.skipped

    @property
    def following(self) -> int:
        """The first ordinal that no known file has."""
        return self._facts.following if self._facts else 0

    def compare(
        self, source: int, folder: str, files: Sequence[FoundFile], others: Sequence[str]
    ) -> Collection[str]:
        """Return the names of the files of a folder that need not be read."""
        with writing(self._draft):
            unchanged, gone = self._listings.compare(f"{source}/{folder}", files, others)
        self._remove(source, folder, gone)
        return unchanged

    def doubt(self, source: int, path: str) -> None:
        """Note that a file could not be read."""
        self._doubted.add(f"{source}/{path}")

    def end_scan(self) -> str:
        """Finish the comparison of folders, and return a digest of the known files."""
        with writing(self._draft):
            for place, names in self._listings.list_vanished():
                source, _, folder = place.partition("/")
                self._remove(int(source), folder, names)
            self._listings.close()
            self._gone.close()
        return self._listings.digest()

    def _remove(self, source: int, folder: str, names: Collection[str]) -> None:
        for name in sorted(names):
            self._gone.append((source, f"{folder}/{name}"))
            self._changed = True

    def statements(self, dropped: Collection[int]) -> Sequence[str]:
        """Return the statements that add the known files to the parsed ones, for staging.stage.

        Files that were read nevertheless are left out, and those with the ordinals `dropped`.
        """
        if self._facts is None:
            return ALL_READ
        places = {name: engine.quote(str(self._table(name))) for name in ("file", "template")}
        gone, without = engine.quote(str(self._draft / _GONE)), ", ".join(map(str, (-1, *dropped)))
        return (
            _SQL.get("known_file", path=places["file"]),
            _SQL.get("known_template", path=places["template"]),
            _SQL.get("gone_file", path=gone, dropped=without),
            _SQL.get("tree_file"),
            _SQL.get("tree_template"),
        )

    def _table(self, name: str) -> Path:
        """Return the path of the table of files or templates."""
        return self._folder / f"{name}.parquet"

    def keep(
        self,
        connection: engine.Connection,
        following: int,
        trees: Sequence[int],
        parsed: bool,
    ) -> None:
        """Keep what was read for the next ingest, from the tables of staging.compare.

        `trees` has the numbers of sources that are folders, and `following` is the next ordinal.
        `parsed`: a file was read.
        """
        if len(self._doubted) > _MOST_DOUBTED:
            return
        with writing(self._draft), engine.reading(str(self._draft)):
            # Tables that stay as they are need not be written again.
            same = self._facts is not None and not (parsed or self._changed)
            numbers = ", ".join(map(str, trees))
            statements = {
                "file": _SQL.get("kept_file", trees=numbers),
                "template": _SQL.get("kept_template", trees=numbers),
            }
            for name, sql in statements.items():
                path = self._draft / f"{name}.parquet"
                if same:
                    try:
                        os.link(self._table(name), path)
                    except OSError:  # a disk without hard links
                        shutil.copyfile(self._table(name), path)
                else:
                    target = engine.quote(str(path))
                    connection.execute(f"COPY ({sql}) TO {target} (FORMAT parquet)")
            (self._draft / _GONE).unlink()
            facts = _Facts(
                following,
                frozenset(self._doubted),
                {path.name: digest_file(path) for path in self._draft.iterdir()},
            )
            document = {**asdict(facts), "doubted": sorted(facts.doubted)}
            (self._draft / _FACTS).write_bytes(seal(json.dumps(document).encode()))
            shutil.rmtree(self._folder, ignore_errors=True)
            self._draft.rename(self._folder)

    def close(self) -> None:
        """Remove what was not kept."""
        self._listings.close()
        shutil.rmtree(self._draft, ignore_errors=True)


def _read_facts(folder: Path) -> _Facts | None:
    """Return the facts of the last ingest, None if there are none or a file is damaged."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        data = (folder / _FACTS).read_bytes()
        check_seal(data)
        facts = build(_Facts, json.loads(data))
        if all(digest_file(folder / name) == digest for name, digest in facts.digests.items()):
            return facts
    return None
