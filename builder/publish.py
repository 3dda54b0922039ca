"""Publish: the intake becomes the next snapshot, which takes effect at an instant just ahead."""

from collections.abc import Mapping
from dataclasses import replace

from builder import collection, intake, merge, provenance, revisit
from builder.build import Build
from builder.revision import Base, Built, revise
from builder.surroundings import Surroundings
from functions.oai import engine
from functions.snapshot import schema
from functions.snapshot.configuration import Configuration
from functions.snapshot.errors import Conflict, SheafError, StoreError
from functions.snapshot.making import Making
from functions.snapshot.manifest import UNSTAMPED, Manifest
from functions.snapshot.store import Writer


class NothingToPublish(SheafError):
    """There is no intake, and nothing is published either."""


def publish(
    store: Writer,
    configuration: Configuration,
    outside: Surroundings,
    formats: Mapping[str, str] | None = None,
) -> Built:
    """Publish the intake of `store` and return when the new snapshot is in effect.

    `formats` says by prefix the digest of what makes each format that is offered now. Where it is
    another than before, there is a new snapshot, from whose instant on the format is so.

    Raises NothingToPublish and what revision.revise raises.
    """
    return revise(store, configuration, outside, _Intake(store, outside, formats or {}))


class _Intake:
    """The change that the finished runs of the intake are; implements revision.Change."""

    def __init__(self, store: Writer, outside: Surroundings, formats: Mapping[str, str]) -> None:
        self._store = store
        self._digests = formats
        self._outside = outside
        self._runs: list[intake.Run] = []

    def build(self, base: Base) -> Built:
        """Build on the newest snapshot out of the runs that are there now."""
        self._runs = list(intake.runs(self._store))
        if not self._runs and base.before.snapshot == 0:
            raise NothingToPublish("nothing to publish: run `sheaf ingest` first")
        if not self._runs:
            formats = self._formats(base.before)
            same = formats == base.before.formats
            changed = None if same else replace(base.before, formats=formats)
            return Built(changed, sum(base.before.kinds().values()))
        held = intake.held(self._store, self._runs)
        try:
            return self._built(base)
        except StoreError as error:
            if held != intake.held(self._store, self._runs):
                raise Conflict("the intake was published by somebody else") from error
            raise

    def done(self) -> None:
        """Discard the runs that were published."""
        try:
            for run in self._runs:
                intake.discard(self._store, run)
        except StoreError as error:  # it is published; the next publish will find it unchanged
            self._outside.say(f"the intake could not be removed: {error}")

    def _built(self, base: Base) -> Built:
        captures, before = self._files("captures"), base.before
        with base.draft() as (connection, draft):
            self._outside.say("comparing the intake with the last snapshot")
            merged = merge.Merged(0, 0, 0, 0)
            if captures:
                merged = merge.merge(connection, captures, before, draft)
            faults, sources = (
                provenance.add(connection, draft, table, self._files(table))
                for table in ("faults", "sources")
            )
            restated = moved = 0
            if sources and not captures:
                _nothing(connection)
            if sources or captures:
                moved = revisit.resolve(connection, draft)
                added = "added_sources" if sources else ""
                restated = collection.restate(connection, draft, base, added)
            after = before
            if merged.new or merged.changed or moved or restated:
                self._outside.say(
                    f"writing {merged.new:,} new and {merged.changed + moved:,} changed records"
                )
                after = Build(connection, draft, before).items(self._outside.progress)
            manifest, formats = None, self._formats(before)
            if after is not before or faults or sources or formats != before.formats:
                manifest = base.manifest(replace(after, formats=formats), draft)
        return Built(
            manifest,
            sum(after.kinds().values()),
            merged.new,
            merged.changed,
            merged.unchanged,
            merged.copies,
            faults,
            moved=moved,
            keys=tuple(draft.written),
        )

    def _formats(self, before: Manifest) -> Mapping[str, Making]:
        """Return what makes the formats now; one that was made otherwise is so from now on."""
        found = dict(before.formats)
        for prefix, digest in self._digests.items():
            known = found.get(prefix)
            if known is None:
                found[prefix] = Making(digest)
            elif known.digest != digest:
                self._outside.say(f"{prefix} makes other XML now: all its records are stamped anew")
                found[prefix] = Making(digest, UNSTAMPED)
        return found

    def _files(self, table: str) -> list[str]:
        return [path for run in self._runs for path in intake.files(self._store, run, table)]


def _nothing(connection: engine.Connection) -> None:
    """Make `fresh` and `superseded` of an intake without captures."""
    types = ", ".join(f"{c.name} {c.type}" for c in schema.TABLES["records"])
    connection.execute(f"CREATE TABLE old ({types})")
    connection.execute("CREATE TABLE altered AS SELECT * EXCLUDE (position, sequence) FROM old")
    connection.execute(merge.NONE_UNALTERED)
    connection.execute(merge.FRESH)
    connection.execute(f"CREATE TABLE superseded AS SELECT {schema.SUPERSEDED} FROM old")
