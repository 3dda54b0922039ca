"""Commits: the object that makes a run count, written when the rest of the run is complete."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from builder.obi import content, key, log
from builder.obi.history import COMMIT, DOCUMENTS, LOG, Committed, OpenedRun, find_ended, history
from functions.snapshot.errors import Conflict, DamagedStore, MissingObject, StoreError
from functions.snapshot.store import Writer


def finish(
    store: Writer,
    opened: OpenedRun,
    said: log.WrittenLog,
    documents: str | None,
    before: Sequence[Committed],
    now: datetime,
) -> Committed:
    """Commit a run whose log and documents are in the store, and return it.

    If another process committed the same log just before, that commit is returned. Raises Conflict
    if its log differs, StoreError if the run was abandoned.
    """
    last = before[-1] if before else None
    run = Committed(
        opened.tist,
        opened.kind,
        opened.source,
        opened.begun,
        now,
        said.digest,
        said.bytes,
        documents,
        last.digest if last else None,
        "",
        said.counts,
    )
    data = run.document(last)
    try:
        store.create(key.run(run.tist) + COMMIT, data)
    except Conflict:
        found = find_ended(store, run.tist)
        if found is None:
            raise StoreError(
                f"another process abandoned the run {opened.name()}; run the command again"
            ) from None
        if found.log != run.log:
            raise Conflict(f"another process committed the run {opened.name()}") from None
        return found
    found = Committed.of(run.tist, data)
    assert found is not None
    return found


def complete(store: Writer, tist: int, now: datetime) -> None:
    """Commit a run that was cut off just before its commit.

    Its log exists, so its writer had waited for its turn and had written everything else.
    """
    prefix = key.run(tist)
    counts: Counter[str] = Counter()
    for line in log.lines(store, prefix + LOG, None):
        counts[_name(line, prefix + LOG)] += 1
    digest, size = content.digest(store, prefix + LOG)
    try:
        documents: str | None = content.digest(store, prefix + DOCUMENTS)[0]
    except MissingObject:
        documents = None
    before = [run for run in history(store) if run.tist < tist]
    said = log.WrittenLog(digest, size, counts)
    finish(store, OpenedRun.read(store, tist), said, documents, before, now)


def _name(line: bytes, where: str) -> str:
    try:
        found: Mapping[str, str] = json.loads(line)
        return str(found["row"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedStore(f"{where} is damaged: {error!r}") from error
