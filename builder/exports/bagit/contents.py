"""Bags of datasets, with their files, and of runs of the obi store, with all that they stored.

The payload of a run holds its own files and packs, and the bytes of its versions under their keys.
In the names, `=` stands for `%`. No key contains `=`, so the replacement is reversible.
`bag-info.txt` describes the run.
"""

from collections.abc import Iterator, Mapping

from builder.exports import obi_source
from builder.exports.bagit.bag import Bag
from builder.exports.dataset_package import DatasetPackage
from builder.obi import content, key, log
from builder.obi.history import COMMIT, OPEN
from builder.obi.run import Committed
from functions.snapshot import instant
from functions.snapshot.store import Reader
from functions.store import engine


def bag_of_dataset(package: DatasetPackage, sender: Mapping[str, str]) -> Bag:
    """Return a package as a bag; `sender` is the part of `bag-info.txt` about the sender."""
    least = min(package.data, key=lambda file: file.size)
    info = {
        **sender,
        "External-Identifier": f"doi:{package.doi}" if package.doi else package.identifier,
        "Internal-Sender-Identifier": package.identifier,
        "External-Description": (
            f"{package.title}. ro-crate-metadata.json describes it, and metadata/ has "
            "what its platform sent. The names of files have = for %."
        ),
    }
    return Bag(
        package.name,
        info,
        lambda: ((file.path, file.read()) for file in package.data),
        (least.path, least.sha256),
        lambda: ((file.path, file.read()) for file in package.tags),
    )


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
        prefix = key.run(run.tist)
        own: dict[str, str | None] = {prefix + OPEN: None, **run.files}
        for place, digest in {**own, prefix + COMMIT: run.digest}.items():
            yield _path(place), content.read_parts(store, place, digest)
        for digest in sorted(log.read_packs(store, run)):
            yield _path(key.pack(digest)), content.read_parts(store, key.pack(digest), digest)
        for place, version in obi_source.stored_keys(connection, run.tist):
            pieces = version and content.version_parts(store, version)
            yield _path(place), pieces or content.read_parts(store, place)

    return Bag(f"run-{run.tist}", info, payload, (_path(key.run(run.tist) + COMMIT), run.digest))


def _path(place: str) -> str:
    return f"data/{place.replace('%', '=')}"
