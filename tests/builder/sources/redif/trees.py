"""Trees and tarballs that the tests make, and what a store has after their ingest."""

import io
import tarfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from builder.obi import content, log
from builder.obi.content import Incidence, Row, Version
from builder.obi.run import history
from builder.store.folder import FolderStore
from tests.builder.obi.logs import documents as logged_documents
from tests.builder.sources.redif.samples import ARCHIVE, PAPER, SERIES
from tests.e2e.conftest import Home, Result

COUNTS = ("appearances", "reappearances", "changes", "deletions", "unchanged")


def paper(
    number: int, title: str = "On Rugs", series: str = "wpaper", archive: str = "aaa"
) -> bytes:
    """Return a paper's template."""
    handle = f"RePEc:{archive}:{series}:{number}".encode()
    return PAPER.replace(b"RePEc:aaa:wpaper:98-01", handle).replace(b"On Rugs", title.encode())


def papers(count: int, **more: str) -> bytes:
    """Return so many papers, one behind the other."""
    return b"\n".join(paper(number, **more) for number in range(count))


def archive(code: str = "aaa") -> dict[str, bytes]:
    """Return the two files that an archive must have, by their paths below RePEc/."""
    head, series = ARCHIVE, SERIES
    return {
        f"{code}/{code}arch.rdf": head.replace(b"RePEc:aaa", f"RePEc:{code}".encode()),
        f"{code}/{code}seri.rdf": series.replace(b"RePEc:aaa", f"RePEc:{code}".encode()),
    }


def tree(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Make `folder` hold these files and no others; return it."""
    for old in [p for p in folder.rglob("*") if p.is_file() or p.is_symlink()]:
        old.unlink()
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def tarball(
    path: Path, members: Iterable[tuple[tarfile.TarInfo | str, bytes]], mode: str = "gz"
) -> Path:
    """Write a tarball of names, or whole headers, with their bytes."""
    with tarfile.open(path, f"w:{mode}") as tar:
        for one, data in members:
            info = tarfile.TarInfo(one) if isinstance(one, str) else one
            info.size = len(data) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(data))
    return path


def ingested(home: Home, *arguments: object) -> dict[str, Any]:
    """Ingest, and return the account of the one run."""
    result: Result = home("ingest", "--jobs", 1, "--json", *arguments)
    assert result.code == 0, result.err
    (account,) = result.json["redif"]
    return dict(account)


def counts(account: Mapping[str, Any]) -> tuple[int, ...]:
    """Return appearances, reappearances, changes, deletions and what is unchanged."""
    return tuple(account[name] for name in COUNTS)


def store_of(home: Home) -> FolderStore:
    return FolderStore(home.folder / "store")


def rows(home: Home, tist: int | None = None) -> list[Row]:
    """Return the rows of a run's log, of the last one's if it is not said which."""
    store = store_of(home)
    runs = [run for run in history(store) if tist in (None, run.tist)]
    return list(log.read_rows(store, runs[-1]))


def documents(home: Home) -> dict[str, dict[str, Any]]:
    """Return the documents of the last run, with their sets, by handle."""
    store = store_of(home)
    return {one["id"]: one for one in logged_documents(store, history(store)[-1])}


def events(home: Home) -> list[tuple[str, str, bool]]:
    """Return id, kind of event, and whether it is again, of the last run's incidences."""
    return [(r.id, r.what, r.again) for r in rows(home) if isinstance(r, Incidence)]


def faults(home: Home) -> Counter[str]:
    """Return the faults of the last run by code."""
    return Counter(row.code for row in rows(home) if row.row == "fault")


def text(home: Home, tist: int, handle: str) -> bytes:
    """Return what is stored of a template that was noted at `tist`."""
    found = [r for r in rows(home, tist) if isinstance(r, Version) and r.id == handle]
    return content.read_version(store_of(home), found[-1])


def versions(home: Home, kind: str) -> dict[str, Version]:
    """Return the versions of a class in the last run by id."""
    return {r.id: r for r in rows(home) if isinstance(r, Version) and r.kind == kind}
