"""Publish: turns the intake into the next snapshot, and reports what changed.

The snapshot takes effect shortly afterwards. The intake holds captures, results of requests for
datasets, and records harvested from other repositories. New runs of the obi store are published
too: their changes of templates become changes of items, and the replay of all runs gives tables
of the snapshot.

Counts: what the parts of a publish changed, and the report that they make together.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from builder.intake import intake
from builder.obi import replay
from builder.obi.history import Committed, history
from builder.outputs.follow import change_store
from builder.publish import captures, collections, filesets, harvested, revisits, templates
from builder.publish.templates import write_obi_tables
from builder.runtime import Runtime
from builder.snapshot import figures, scratch_tables, words
from builder.snapshot.draft import Draft
from builder.snapshot.tables import SnapshotTables
from builder.snapshot.transaction import ChangeResult, Transaction
from builder.text import tally
from functions.config.configuration import Configuration
from functions.database import engine
from functions.oai.render.copy_address import settings_in_records
from functions.snapshot import figure_rows
from functions.snapshot.errors import ConfigurationError, Conflict, SheafError, StoreError
from functions.snapshot.manifest import UNSTAMPED, Making, Manifest
from functions.snapshot.store import Writer


@dataclass
class ChangeCounts:
    """The results of the parts of a publish."""

    merged: captures.Merged
    moved: int = 0
    restated: int = 0
    template_changes: templates.RevisedTemplates = field(default_factory=templates.RevisedTemplates)
    fileset_changes: filesets.RevisedFilesets = field(default_factory=filesets.RevisedFilesets)
    harvest_changes: harvested.RevisedHarvests = field(default_factory=harvested.RevisedHarvests)

    @property
    def _revised(
        self,
    ) -> tuple[templates.RevisedTemplates, filesets.RevisedFilesets, harvested.RevisedHarvests]:
        return self.template_changes, self.fileset_changes, self.harvest_changes

    @property
    def new(self) -> int:
        """Number of new items."""
        return self.merged.new + sum(changes.new for changes in self._revised)

    @property
    def changed(self) -> int:
        """Number of changed items."""
        return self.merged.changed + self.moved + sum(changes.changed for changes in self._revised)

    def account(
        self, manifest: Manifest | None, records: int, faults: int, keys: Sequence[str]
    ) -> ChangeResult:
        """Return the result of the change; `manifest` is None if nothing changes."""
        return ChangeResult(
            manifest,
            records,
            self.new,
            self.changed - self.moved,
            self.merged.unchanged + self.fileset_changes.unchanged + self.harvest_changes.unchanged,
            self.merged.copies,
            faults,
            moved=self.moved,
            keys=tuple(keys),
            deleted=sum(changes.deleted for changes in self._revised),
        )


_LARGE = 1_000_000
"""Captures from which on the need for disk is announced."""
_SCRATCH_BYTES, _STORE_BYTES = 550, 150
"""Bytes of a capture at most, as bench.cold measured them with a tenth of revisits."""


class NothingToPublish(SheafError):
    """There is no intake, and nothing is published either."""


def publish(
    store: Writer,
    configuration: Configuration,
    runtime: Runtime,
    formats: Mapping[str, str] | None = None,
    *,
    redate: bool = False,
) -> ChangeResult:
    """Publish the intake of `store` and return when the new snapshot is in effect.

    `formats` maps each offered metadata prefix to the digest of the code that makes it. If a digest
    differs from the last one, there is a new snapshot, and the format changes at its instant. That
    a setting changes it, which records show, is refused unless `redate` is true.

    The log, the tables of `publish.tables` and the dumps of `publish.dumps` follow. If that fails,
    the snapshot is in effect nevertheless, and the next publish completes them.

    Raises NothingToPublish, OutputError and the errors of transaction.revise.
    """
    change = IntakeChange(store, configuration, runtime, formats or {}, redate=redate)
    return change_store(store, configuration, runtime, change)


class IntakeChange:
    """The change made by the finished runs of the intake and the new runs of the obi store.

    With `last`, it is that of the runs of the obi store up to this one, without the intake.
    Implements transaction.Change.
    """

    def __init__(
        self,
        store: Writer,
        configuration: Configuration,
        runtime: Runtime,
        formats: Mapping[str, str],
        last: int | None = None,
        *,
        redate: bool = False,
    ) -> None:
        self._store = store
        self._redate = redate
        self._last = last
        self._configuration = configuration
        self._digests = formats
        self._runtime = runtime
        self._runs: list[intake.IntakeRun] = []
        self._keys: dict[str, list[str]] = {}

    def build(self, base: Transaction) -> ChangeResult:
        """Build on the newest snapshot from the runs that are there now."""
        self._runs = list(intake.runs(self._store)) if self._last is None else []
        last = self._last
        committed = [run for run in history(self._store) if last is None or run.tist <= last]
        new_runs = committed if committed and committed[-1].tist > base.before.run else ()
        if not self._runs and not new_runs and base.before.snapshot == 0:
            raise NothingToPublish("nothing to publish: run `sheaf ingest` first")
        if not self._runs and not new_runs:
            return self._rebuild(base)
        self._keys = intake.keys_of(self._store, self._runs)
        self._announce_need()
        try:
            return self._build(base, new_runs)
        except StoreError as error:
            if self._runs != list(intake.runs(self._store)):
                raise Conflict("another process published the intake") from error
            raise

    def _rebuild(self, base: Transaction) -> ChangeResult:
        """Build where nothing is new except, possibly, a format; figures that lack are counted."""
        before, after = base.before, self._with_formats(base.before)
        records = sum(before.kinds().values())
        written: list[str] = []
        lacks_figures = before.sequences and not before.tables.get(figure_rows.TABLE)
        if lacks_figures or (words.TABLE in before.tables) != self._configuration["search.words"]:
            with base.draft() as (connection, draft):
                if lacks_figures:
                    self._runtime.say("counting the figures of all records once")
                    figures.update(connection, draft, before)
                self._keep_words(draft)
                words.complete(connection, draft)
                after, written = base.manifest(after, draft), draft.written
        return ChangeResult(None if after is before else after, records, keys=tuple(written))

    def _keep_words(self, draft: Draft) -> None:
        """Begin or remove the table of words, as configured."""
        if not self._configuration["search.words"]:
            draft.tables.pop(words.TABLE, None)
        elif words.TABLE not in draft.tables:
            draft.tables[words.TABLE] = ()

    def clean_up(self) -> None:
        """Discard the runs that were published."""
        try:
            intake.discard(self._store, self._runs)
        except StoreError as error:  # published already; the next publish removes it
            self._runtime.say(f"the intake could not be removed: {error}")

    def _build(self, base: Transaction, new_runs: Sequence[Committed]) -> ChangeResult:
        """Build the changes of the intake. If the obi store has new runs, replay all its runs."""
        before = base.before
        handle_prefix = templates.prefix(self._configuration, before) if new_runs else before.prefix
        with base.draft() as (connection, draft):
            self._keep_words(draft)
            changes, faults, has_rows = self._merge(
                base, connection, draft, new_runs, handle_prefix
            )
            after = before
            if changes.new or changes.changed or changes.restated:
                self._runtime.say(
                    f"writing {changes.new:,} new and {changes.changed:,} changed records"
                )
                rows = {templates.KIND: templates.rows(connection, changes.template_changes)}
                after = SnapshotTables(connection, draft, before, rows if new_runs else None).items(
                    self._runtime.progress
                )
            words.complete(connection, draft)
            manifest, described = None, self._with_formats(before)
            has_words = draft.tables.get(words.TABLE) != before.tables.get(words.TABLE)
            if after is not before or has_rows or has_words or described is not before:
                published_prefix = handle_prefix if changes.template_changes.new else ""
                after = replace(
                    after,
                    formats=described.formats,
                    settings=described.settings,
                    run=new_runs[-1].tist if new_runs else before.run,
                    prefix=before.prefix or published_prefix,
                )
                manifest = base.manifest(after, draft)
        return changes.account(manifest, sum(after.kinds().values()), faults, draft.written)

    def _merge(
        self,
        base: Transaction,
        connection: engine.Connection,
        draft: Draft,
        new_runs: Sequence[Committed],
        handle_prefix: str,
    ) -> tuple[ChangeCounts, int, bool]:
        """Compare the intake with the last snapshot: the changes of each kind are in the database.

        Returns counts of them, the number of new faults, and whether other tables have new rows.
        """
        before = base.before
        self._runtime.say("comparing the intake with the last snapshot")
        merged = captures.Merged(0, 0, 0, 0)
        if capture_files := self._files("captures"):
            merged = captures.merge(connection, capture_files, before, draft)
        if new_runs:
            self._runtime.say(f"replaying {tally(len(new_runs), 'run')} of the obi store")
            replay.fold(connection, self._store, new_runs, draft.folder)
            write_obi_tables(draft)
        fileset_files = self._files("filesets")
        harvested_files = self._files("harvested")
        faults, sources = self._provenance(base, connection, draft, new_runs)
        changes = ChangeCounts(merged)
        if sources or capture_files or new_runs or fileset_files or harvested_files:
            if not capture_files:  # which would make these
                for name in ("listed_versions", "prepared_versions", "superseded_versions"):
                    connection.execute(scratch_tables.create(name))
                connection.execute(captures.NO_INTAKE_VERSIONS)
                connection.execute(captures.NEW_VERSIONS)
            changes.moved = revisits.resolve(connection, draft)
            changes.restated = collections.restate(
                connection, draft, base, "added_sources" if sources else ""
            )
        if new_runs:
            changes.template_changes = templates.revise(
                connection, draft, self._store, new_runs, handle_prefix, before.run
            )
        if fileset_files:
            follow = self._configuration["fileset.follow_removals"]
            changes.fileset_changes = filesets.revise(
                connection, draft, fileset_files, before, follow=follow
            )
            for key in changes.fileset_changes.altered:
                self._runtime.say(
                    f"{key} was altered together with its record since it was published: its "
                    "dataset stays as published; restore both from a copy (`sheaf verify`)"
                )
        if harvested_files:
            changes.harvest_changes = harvested.revise(
                connection, draft, harvested_files, self._files("set_names")
            )
        return changes, faults, bool(faults or sources or new_runs or fileset_files)

    def _announce_need(self) -> None:
        """Say how much disk a large publish needs, and how much there is."""
        captures = sum(source.captures for run in self._runs for source in run.sources)
        if captures < _LARGE:
            return
        scratch, store = captures * _SCRATCH_BYTES / 1e9, captures * _STORE_BYTES / 1e9
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free / 1e9
        self._runtime.say(
            f"{captures:,} captures may need {scratch:.0f} GB in {folder}, where {free:.0f} GB are "
            f"free, and {store:.0f} GB in the store"
            + ("; set TMPDIR to a larger disk" if free < scratch else "")
        )

    def _provenance(
        self,
        base: Transaction,
        connection: engine.Connection,
        draft: Draft,
        new_runs: Sequence[Committed],
    ) -> tuple[int, int]:
        """Add the faults and sources; return how many rows of each are new."""
        queries = {"faults": templates.FAULTS, "sources": templates.SOURCES} if new_runs else {}
        times = [run.time for run in new_runs if run.tist > base.before.run]
        listed = intake.write_sources(self._runs, draft.folder)
        files = {"faults": self._files("faults"), "sources": [str(listed)] if listed else []}
        faults, sources = (
            captures.add_provenance(
                connection, draft, name, paths, queries.get(name, "").format(times=times)
            )
            for name, paths in files.items()
        )
        return faults, sources

    def _with_formats(self, before: Manifest) -> Manifest:
        """Return the manifest with what makes the formats; itself if that is as it was.

        A new digest takes effect with this snapshot. Raises ConfigurationError if it is new because
        of a setting, and that is not wanted.
        """
        if not self._digests:
            return before
        makings, settings = dict(before.formats), settings_in_records(self._configuration)
        changed = [
            prefix
            for prefix, digest in self._digests.items()
            if makings.setdefault(prefix, Making(digest)).digest != digest
        ]
        if changed and not self._redate:
            for key, value in settings.items():
                if before.settings.get(key, value) != value:
                    raise ConfigurationError(
                        f'{key} is "{value}", but the store was published with '
                        f'"{before.settings[key]}", which records show: restore that value, or run '
                        "`sheaf publish --redate` to give them new datestamps"
                    )
        for prefix in changed:
            self._runtime.say(
                f"the XML of {prefix} has changed: all its records get a new datestamp"
            )
            makings[prefix] = Making(self._digests[prefix], UNSTAMPED)
        if makings == before.formats and settings == before.settings:
            return before
        return replace(before, formats=makings, settings=settings)

    def _files(self, table: str) -> list[str]:
        return intake.files(self._store, self._runs, self._keys, table)
