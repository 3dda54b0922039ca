"""Contents of a run's bag, and the description in its `bag-info.txt`."""

from collections.abc import Iterator, Mapping

from builder.export import obi_objects
from builder.export.bagit import Bag
from builder.obi import content, key
from builder.obi.history import COMMIT, DOCUMENTS, LOG, OPEN
from builder.obi.run import Committed
from functions.database import engine
from functions.snapshot import instant
from functions.snapshot.store import Reader


def parcel(
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
                yield place, content.parts(store, place, digest)
        for place, digest in obi_objects.stored_keys(connection, run.tist):
            yield place, content.parts(store, place, digest)

    return Bag(f"run-{run.tist}", info, payload, (key.run(run.tist) + COMMIT, run.digest))
