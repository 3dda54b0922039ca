"""Publish: the intake becomes the next snapshot, which takes effect at an instant just ahead.

Data files, leaves and manifest are written first; then one pointer moves, by a conditional write.
Whatever fails before that leaves the old snapshot in effect. Two publishers at once: one wins,
the other starts over from the winner's snapshot.
"""

import math
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from builder import intake
from builder.build import Advance, Build, Built, Progress
from builder.snapshot import Draft
from builder.views import views
from functions.oai import engine
from functions.snapshot import instant, layout
from functions.snapshot.configuration import Configuration
from functions.snapshot.configuration import default as configuration_default
from functions.snapshot.errors import ConfigurationError, Conflict, SheafError, StoreError
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import Entry, Pointer
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_TRIES = 8

Clock = Callable[[], datetime]


class NothingToPublish(SheafError):
    """There is no intake, and nothing is published either."""


def _unseen(total: int) -> AbstractContextManager[Advance]:
    return nullcontext(lambda rows: None)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a publish takes from outside: time, how to tell of its work, versions of libraries."""

    clock: Clock
    sleep: Callable[[float], None]
    say: Callable[[str], None]
    libraries: Mapping[str, str]
    threads: int = 2
    progress: Progress = _unseen


def publish(store: Writer, configuration: Configuration, outside: Surroundings) -> Built:
    """Publish the intake of `store` and return when the new snapshot is in effect.

    Raises NothingToPublish, ConfigurationError for another namespace than the last snapshot's,
    Conflict if other publishers won every time, and StoreError.
    """
    for _ in range(_TRIES):
        try:
            return _publish(store, configuration, outside)
        except Conflict:
            outside.say("another publish was faster; starting over from its snapshot")
    raise Conflict(f"other publishers were faster {_TRIES} times; run again")


def _publish(store: Writer, configuration: Configuration, outside: Surroundings) -> Built:
    tag = store.tag(layout.POINTER)
    catalogue = Catalogue(store)
    pointer = catalogue.pointer()
    newest = pointer.newest()
    namespace = configuration["repository.namespace"]
    before = (
        catalogue.manifest(newest.snapshot)
        if newest
        else Manifest(0, datetime.fromtimestamp(0, UTC), namespace, (), {})
    )
    if before.namespace != namespace:
        raise ConfigurationError(
            f"repository.namespace is {namespace}, but the store was published with "
            f"{before.namespace}: identifiers must not change, so set it back or use another store"
        )
    if newest is None and namespace == configuration_default("repository.namespace"):
        raise ConfigurationError(
            f"repository.namespace is still {namespace}: every identifier will begin with it for "
            "ever, so set it to a domain name of yours before the first publish"
        )
    runs = list(intake.runs(store))
    if not runs and newest is None:
        raise NothingToPublish("nothing to publish: run `sheaf ingest` first")
    built = Built(None, sum(before.kinds().values()))
    if runs:
        memory = configuration["publish.memory"]
        held = intake.held(store, runs)
        try:
            built = _build(store, catalogue, before, runs, memory, outside)
        except StoreError as error:
            if store.tag(layout.POINTER) != tag or held != intake.held(store, runs):
                raise Conflict("the intake was published by somebody else") from error
            raise
    if built.manifest is not None:
        lead = configuration["publish.lead"]
        manifest = _commit(store, outside, pointer, tag, built, lead)
        built = replace(built, manifest=manifest)
    try:
        for run in runs:
            intake.discard(store, run)
    except StoreError as error:  # it is published; the next publish will find it unchanged
        outside.say(f"the intake could not be removed: {error}")
    return built


def _build(
    store: Writer,
    catalogue: Catalogue,
    before: Manifest,
    runs: list[intake.Run],
    memory: int,
    outside: Surroundings,
) -> Built:
    with tempfile.TemporaryDirectory(prefix="sheaf-publish-") as scratch:
        folder = Path(scratch)
        connection = engine.connect(
            threads=outside.threads, memory_megabytes=memory, scratch=folder
        )
        try:
            draft = Draft(store, connection, folder, before.tables)
            build = Build(store, connection, draft, catalogue, before)
            return build.run(runs, outside.libraries, outside.say, outside.progress)
        finally:
            connection.close()


def _commit(
    store: Writer,
    outside: Surroundings,
    pointer: Pointer,
    tag: str | None,
    built: Built,
    lead: int,
) -> Manifest:
    """Write the manifest, move the pointer, and wait until the snapshot is in effect.

    Should the pointer be moved later than the instant that was chosen, readers may already have
    answered, as of that instant, from the old snapshot. A later instant is then chosen, and what
    was changed is stamped with that one.
    """
    assert built.manifest is not None
    skipped = list(built.manifest.skipped)
    number = 0
    while True:
        newest = pointer.newest()
        if number > (newest.snapshot if newest else 0):
            skipped.append(number)
        number = 1 + max(number, newest.snapshot if newest else 0)
        now = outside.clock()
        effective = _effective(now, lead, newest)
        manifest = replace(_stamped(built, number, effective), skipped=tuple(skipped))
        try:
            store.create(layout.manifest_key(number), manifest.to_json())
        except Conflict:
            continue  # left by a publish that did not come to its end; numbers may have gaps
        store.create(layout.views_key(number), views(store, manifest).encode())
        lead *= 2
        if outside.clock() >= effective:
            store.remove(layout.views_key(number))
            store.remove(layout.manifest_key(number))
            continue
        pointer = pointer.moved(Entry(number, effective), now)
        tag = store.replace(layout.POINTER, pointer.to_json(), tag)
        if outside.clock() < effective:
            break
    outside.say(f"snapshot {number} takes effect at {instant.to_text(effective)}")
    outside.sleep(max(0.0, (effective - outside.clock()).total_seconds()))
    return manifest


def _effective(now: datetime, lead: int, newest: Entry | None) -> datetime:
    """Return a whole second at least `lead` ahead and later than every earlier instant."""
    chosen = datetime.fromtimestamp(math.ceil(now.timestamp()) + lead, UTC)
    if newest is not None and chosen <= newest.effective:
        chosen = newest.effective + timedelta(seconds=1)
    return chosen


def _stamped(built: Built, number: int, effective: datetime) -> Manifest:
    """Return the manifest as snapshot `number`; a sequence of its own takes effect with it."""
    assert built.manifest is not None
    sequences = built.manifest.sequences
    if built.new or built.changed:
        sequences = (*sequences[:-1], replace(sequences[-1], effective=effective))
    return replace(built.manifest, snapshot=number, effective=effective, sequences=sequences)
