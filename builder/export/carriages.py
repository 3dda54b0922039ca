"""Copies of the objects beside the snapshots: the obi store, and files of datasets."""

from builder.filesets.strategies import replicate as filesets
from builder.obi import key as obi
from builder.obi.replicate import ObiReplication
from builder.store.web_store import WebStore
from functions.snapshot import schema
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Writer

Carriage = ObiReplication | filesets.FilesetReplication


def open_carriages(source: Writer, target: Writer, newest: Manifest) -> tuple[Carriage, ...]:
    """Return what copies these objects of a store whose newest snapshot is given.

    Raises UnlistedError if there are such objects at a web address, which has no listing.
    """
    if not isinstance(source, WebStore):
        return ObiReplication(source, target), filesets.FilesetReplication(source, target)
    if newest.run:
        source.refuse_list(obi.ROOT)
    if any(newest.kinds().get(kind) for kind in schema.DATASETS):
        source.refuse_list(filesets.PREFIXES[0])
    return ()
