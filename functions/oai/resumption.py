"""Resumption: the snapshot in which a token's list continues, and the set that it names.

OAI-PMH 2.0, section 3.5 (flow control).
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from functions.oai.token import Token
from functions.reading.as_of import PointerReading
from functions.reading.repository import Repository
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Manifest

_SOUGHT = 1000  # sets read at a time to resolve a token's shortened set


def is_known(repository: Repository, snapshot: int, reading: PointerReading) -> bool:
    """Return whether a token's snapshot was ever in effect, or is by any allowed clock."""
    current = repository.manifest(max(reading.reached, reading.entry.snapshot))
    return snapshot <= reading.reached and snapshot not in current.skipped


def find_manifest(
    repository: Repository, snapshot: int, reading: PointerReading
) -> tuple[Manifest, bool]:
    """Return a snapshot's manifest, or the current one if it was retired, and whether it was."""
    if not reading.pointer.is_retired(snapshot):
        try:
            return repository.manifest(snapshot), False
        except MissingObject:
            if snapshot >= reading.entry.snapshot:
                raise  # the snapshot in effect is never retired, so the store is damaged
    return repository.manifest(reading.entry.snapshot), True


def name_set(
    repository: Repository, manifest: Manifest, token: Token, more: Sequence[str] = ()
) -> Token:
    """Return the token with its set in full, from the repository or `more`.

    Raises OAIError if no set matches.
    """
    if token.shortened is None:
        return token
    return token.with_set(chain(more, _beginning(repository, manifest, token.shortened[0])))


def _beginning(repository: Repository, manifest: Manifest, start: str) -> Iterator[str]:
    after = start
    while rows := repository.sets(manifest, after, _SOUGHT):
        for row in rows:
            if not row.spec.startswith(start):
                return
            yield row.spec
        after = rows[-1].spec
