"""Bags (BagIt 1.0, RFC 8493): a run of the obi store with everything that it stored.

They are for transfer. The payload holds the run's own files, and the bytes of its versions under
their keys. In the names, `=` stands for `%`: RFC 8493 requires escaped percent signs in
manifests, but the reference implementation in Python does not support this. So only names without
`%` are unambiguous. No key contains `=`, so the replacement is reversible. `bag-info.txt`
describes the run.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from builder.errors import UsageError
from builder.export import obi_source, staging
from builder.obi import content, key
from builder.obi.history import COMMIT, DOCUMENTS, LOG, OPEN
from builder.obi.run import Committed
from builder.runtime import Advance
from functions import distribution
from functions.database import engine
from functions.snapshot import instant
from functions.snapshot.store import Reader

_ALGORITHMS = ("sha256", "sha512")
_DECLARATION = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"


@dataclass(frozen=True, slots=True)
class Bagged:
    """Result of an export: number of bags and payload files, and their bytes.

    `there` counts the bags of an earlier export.
    """

    bags: int
    files: int
    bytes: int
    there: int


Payload = Iterable[tuple[str, Iterable[bytes]]]
"""Keys, each with its bytes in chunks, which are read before the next key is requested."""


@dataclass(frozen=True, slots=True)
class Bag:
    """A bag to create: its name, the content of its `bag-info.txt`, and a function for its payload.

    `mark` is a key in the payload with its SHA-256, which identifies an existing bag.
    """

    name: str
    info: Mapping[str, str]
    payload: Callable[[], Payload]
    mark: tuple[str, str]


def export(bags: Sequence[Bag], target: Path, today: date, advance: Advance) -> Bagged:
    """Create those of `bags` that the folder `target` does not have yet.

    A bag has another name until it is complete and synced. `advance` is called with the number of
    bags. Raises what opening and reading the payload raises, UsageError and StoreError.
    """
    made = files = size = 0
    with staging.beside(target) as scratch:
        target.mkdir(exist_ok=True)
        for bag in bags:
            advance(1)
            if (target / bag.name).exists():
                _check(bag, target / bag.name)
                continue
            counted = _make_bag(bag, scratch / bag.name, today)
            staging.sync()
            (scratch / bag.name).rename(target / bag.name)
            made, files, size = made + 1, files + counted[0], size + counted[1]
        staging.sync()
    return Bagged(made, files, size, len(bags) - made)


def _check(bag: Bag, folder: Path) -> None:
    """Raise UsageError if the existing bag is a different one."""
    key, digest = bag.mark
    try:
        found = hashlib.sha256((folder / _path(key)).read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        found = ""
    if found != digest:
        raise UsageError(f"{folder} exists and is not a bag of this run: choose another folder")


def _path(key: str) -> str:
    return f"data/{key.replace('%', '=')}"


def _make_bag(bag: Bag, folder: Path, today: date) -> tuple[int, int]:
    """Create a bag in `folder`; return the number of files in its payload, and of bytes."""
    folder.mkdir()
    files = size = 0
    with ExitStack() as stack:
        manifests = {
            name: stack.enter_context((folder / f"manifest-{name}.txt").open("w", encoding="utf-8"))
            for name in _ALGORITHMS
        }
        for key, parts in bag.payload():
            path = _path(key)
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            digests, length = _write(parts, folder / path)
            for name, digest in digests.items():
                manifests[name].write(f"{digest}  {path}\n")
            files, size = files + 1, size + length
    info = {
        "Bag-Software-Agent": f"Sheaf {distribution.version()}",
        "Bagging-Date": today.isoformat(),
        "Payload-Oxum": f"{size}.{files}",
    } | dict(bag.info)
    (folder / "bagit.txt").write_bytes(_DECLARATION)
    lines = (f"{name}: {' '.join(text.split())}\n" for name, text in info.items())
    (folder / "bag-info.txt").write_text("".join(lines), "utf-8")
    _write_tag_manifests(folder)
    return files, size


def _write_tag_manifests(folder: Path) -> None:
    tags = sorted(path for path in folder.iterdir() if path.is_file())
    for name in _ALGORITHMS:
        lines = []
        for path in tags:
            with path.open("rb") as file:
                lines.append(f"{hashlib.file_digest(file, name).hexdigest()}  {path.name}\n")
        (folder / f"tagmanifest-{name}.txt").write_text("".join(lines), "utf-8")


def _write(parts: Iterable[bytes], path: Path) -> tuple[dict[str, str], int]:
    hashes = {name: hashlib.new(name) for name in _ALGORITHMS}
    size = 0
    with path.open("xb") as out:
        for part in parts:
            for some in hashes.values():
                some.update(part)
            size += out.write(part)
    return {name: some.hexdigest() for name, some in hashes.items()}, size


def bag_of_run(
    store: Reader, connection: engine.Connection, run: Committed, sender: Mapping[str, str]
) -> Bag:
    """Return the bag of a run; `sender` is the part of `bag-info.txt` about the sender."""
    began, ended = instant.to_text(run.begun), instant.to_text(run.committed)
    info = {
        **sender,
        "External-Identifier": str(run.tist),
        "External-Description": (
            f"Run of `sheaf {run.kind}` over {run.source}, {began} to {ended}. Payload files are "
            "named by their keys in the store, with = for %."
        ),
    }

    def payload() -> Iterator[tuple[str, Iterator[bytes]]]:
        own = {OPEN: None, DOCUMENTS: run.documents, LOG: run.log, COMMIT: run.digest}
        for name, digest in own.items():
            if name != DOCUMENTS or digest is not None:
                place = key.run(run.tist) + name
                yield place, content.read_parts(store, place, digest)
        for place, digest in obi_source.stored_keys(connection, run.tist):
            yield place, content.read_parts(store, place, digest)

    return Bag(f"run-{run.tist}", info, payload, (key.run(run.tist) + COMMIT, run.digest))
