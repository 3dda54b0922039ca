"""Publish: turns the intake into the next snapshot, and reports what changed.

The snapshot takes effect shortly afterwards. The intake holds captures, results of requests for
datasets, and records harvested from other repositories. New runs of the obi store are published
too: their changes of templates become changes of items, and the replay of all runs gives tables
of the snapshot.
"""

import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from builder.intake import intake
from builder.intake.mirror import find_origin
from builder.obi.history import Committed, history
from builder.outputs.follow import change_store
from builder.runtime import Runtime
from builder.snapshot.transaction import Change, ChangeResult, Transaction
from builder.text import tally
from functions.config.configuration import Configuration
from functions.oai.format import NO_ROW
from functions.oai.render.copy_address import CopyAddresses
from functions.snapshot import layout
from functions.snapshot.errors import ConfigurationError, Conflict, SheafError, StoreError
from functions.snapshot.item_tables import OWN_READING
from functions.snapshot.manifest import UNSTAMPED, Making, Manifest
from functions.snapshot.store import Writer

if TYPE_CHECKING:
    from builder.kinds.kind import KindChange
    from builder.snapshot.draft import Draft

_LARGE = 1_000_000
"""Captures from which on the need for disk is announced."""
_SCRATCH_BYTES, _STORE_BYTES = 550, 150
"""Bytes of a capture at most, as bench.cold measured them with a tenth of revisits."""
_OWN_MEGABYTES = 400
"""Memory of the database for own records alone, of which it sorts nothing but keys and words."""


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


@dataclass
class IntakeChange(Change):
    """The change made by the finished runs of the intake and the new runs of the obi store.

    With `last`, it is that of the runs of the obi store up to this one, without the intake.
    """

    store: Writer
    configuration: Configuration
    runtime: Runtime
    formats: Mapping[str, str]
    last: int | None = None
    redate: bool = field(default=False, kw_only=True)
    _runs: list[intake.IntakeRun] = field(default_factory=list, init=False)
    _keys: dict[str, list[str]] = field(default_factory=dict, init=False)

    def build(self, base: Transaction) -> ChangeResult:
        """Build on the newest snapshot from the runs that are there now."""
        self._runs = list(intake.runs(self.store)) if self.last is None else []
        committed = [r for r in history(self.store) if self.last is None or r.tist <= self.last]
        new_runs = committed if committed and committed[-1].tist > base.before.run else ()
        if not self._runs and not new_runs and base.before.snapshot == 0:
            raise NothingToPublish("nothing to publish: run `sheaf ingest` first")
        if not self._runs and not new_runs:
            return self._rebuild(base)
        self._keys = intake.keys_of(self.store, self._runs)
        self._announce_need()
        try:
            return self._build(base, new_runs)
        except StoreError as error:
            if self._runs != list(intake.runs(self.store)):
                raise Conflict("another process published the intake") from error
            raise

    def _rebuild(self, base: Transaction) -> ChangeResult:
        """Build where nothing is new except, possibly, a format or the table of words."""
        before, after = base.before, self._with_formats(base.before)
        records = sum(before.kinds().values())
        written: list[str] = []
        if (layout.WORDS in before.tables) != self.configuration["search.words"]:
            from builder.snapshot import words

            with base.draft() as (connection, draft):
                self._keep_words(draft)
                words.complete(connection, draft)
                after, written = base.manifest(after, draft), draft.written
        return ChangeResult(None if after is before else after, records, keys=tuple(written))

    def _keep_words(self, draft: "Draft") -> None:
        """Begin or remove the table of words, as configured."""
        if not self.configuration["search.words"]:
            draft.tables.pop(layout.WORDS, None)
        elif layout.WORDS not in draft.tables:
            draft.tables[layout.WORDS] = ()

    def clean_up(self) -> None:
        """Discard the runs that were published."""
        try:
            intake.discard(self.store, self._runs)
        except StoreError as error:  # published already; the next publish removes it
            self.runtime.say(f"the intake could not be removed: {error}")

    def _build(self, base: Transaction, runs: Sequence[Committed]) -> ChangeResult:
        """Build the changes of each kind, with the `runs` of the obi store if some are new."""
        # A publish of nothing does without these, and most that they load.
        from builder.kinds import KINDS
        from builder.kinds.kind import KindChange, KindCounts
        from builder.publish.provenance import PROVENANCE_KEYS
        from builder.snapshot import words
        from builder.snapshot.tables import SnapshotTables

        before = base.before
        origin = find_origin(self.configuration, before, self._runs, others=bool(runs))
        is_own = not runs and all(run.own for run in self._runs)
        with base.draft(_OWN_MEGABYTES if is_own else None) as (connection, draft):
            self._keep_words(draft)
            change = KindChange(base, connection, draft, self._files, runs)
            for kind in KINDS:
                kind.check(change)
            self.runtime.say("comparing the intake with the last snapshot")
            counts = sum((kind.gather(change) for kind in KINDS), KindCounts())
            faults, sources = (self._add_provenance(change, table) for table in PROVENANCE_KEYS)
            change.has_sources = sources > 0
            counts = sum((kind.settle(change) for kind in KINDS), counts)
            counts = sum((kind.revise(change) for kind in KINDS), counts)
            after = before
            if counts.new or counts.changed or counts.moved or counts.restated:
                also = tally(counts.moved, "revisit") + " with a new original"
                self.runtime.say(
                    f"writing {counts.new:,} new and {counts.changed:,} changed records"
                    + (f", and {also}" if counts.moved else "")
                )
                tables = SnapshotTables(connection, draft, before, change.rows or None)
                after = tables.items(self.runtime.progress)
            words.complete(connection, draft)
            if (origin and origin.sets) != (before.origin and before.origin.sets):
                self._keep_sets(draft)
            came = {*change.fields.get("offers", ()), *(origin.formats if origin else ())}
            manifest, described = None, self._with_formats(before, came)
            has_words = draft.tables.get(layout.WORDS) != before.tables.get(layout.WORDS)
            has_rows = faults or sources or change.has_rows or has_words or origin != before.origin
            if after is not before or has_rows or described is not before:
                formats, settings = described.formats, described.settings
                after = replace(after, formats=formats, settings=settings, origin=origin)
                after = replace(after, **change.fields)
                manifest = base.manifest(after, draft)
        return ChangeResult(
            manifest,
            sum(after.kinds().values()),
            counts.new,
            counts.changed,
            counts.unchanged,
            counts.copies,
            faults,
            moved=counts.moved,
            keys=tuple(draft.written),
            deleted=counts.deleted,
        )

    def _add_provenance(self, change: "KindChange", table: str) -> int:
        """Add the faults, or the sources, of the intake and of kinds; return how many are new."""
        from builder.publish.provenance import add_provenance, forget_faults

        files = self._files(table)
        if table == "faults":
            mended = self._list_mended()
            change.has_rows |= forget_faults(change.connection, change.draft, mended)
        if table == "sources":
            listed = intake.write_sources(self._runs, change.draft.folder)
            files = [str(listed)] if listed else []
        more = change.provenance.get(table, "")
        return add_provenance(change.connection, change.draft, table, files, more)

    def _keep_sets(self, draft: "Draft") -> None:
        """Replace the sets of a mirror's origin by those that the last run of the intake has."""
        from functions.store import engine

        sql = f"SELECT set_spec, name FROM {engine.table('$files')} ORDER BY set_spec"
        query = sql, {"files": self._files("set_names")[-1:]}
        draft.tables["origin_sets"] = draft.leaves(draft.write("origin_sets", [query]))

    def _list_mended(self) -> dict[str, int]:
        """Return the files of own records that were read whole, as `forget_faults` wants them.

        Other sources are read once, or have the same faults again.
        """
        mended, count = dict[str, int](), 0
        for run in self._runs:
            whole = (s for s in run.sources if (s.reading or "").startswith(OWN_READING))
            mended |= dict.fromkeys((*(source.source for source in whole), *run.mended), count)
            count += sum(
                key.rpartition("/")[2].startswith("faults-") for key in self._keys[run.name]
            )
        return mended

    def _announce_need(self) -> None:
        """Say how much disk a large publish needs, and how much there is."""
        captures = sum(source.captures for run in self._runs for source in run.sources)
        if captures < _LARGE:
            return
        scratch, store = captures * _SCRATCH_BYTES / 1e9, captures * _STORE_BYTES / 1e9
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free / 1e9
        self.runtime.say(
            f"{captures:,} captures may need {scratch:.0f} GB in {folder}, where {free:.0f} GB are "
            f"free, and {store:.0f} GB in the store"
            + ("; set TMPDIR to a larger disk" if free < scratch else "")
        )

    def _with_formats(self, before: Manifest, came: Collection[str] = ()) -> Manifest:
        """Return the manifest with what makes the formats; itself if that is as it was.

        New items `came` in formats with these prefixes, which need no row in formats.toml. A new
        digest takes effect with this snapshot. Raises ConfigurationError if it is new because
        of a setting, and that is not wanted.
        """
        if not self.formats:
            return before
        makings, copies = dict(before.formats), CopyAddresses.of(self.configuration)
        digests = dict(self.formats)
        if raw := digests.pop(NO_ROW, ""):
            came = {*came, *before.offers, *(before.origin.formats if before.origin else ())}
            digests |= dict.fromkeys(came - digests.keys(), raw)
        settings = {  # which records show
            "repository.name": self.configuration["repository.name"],
            "content.address": " ".join(copies.templates),
        }
        changed = [
            prefix
            for prefix, digest in digests.items()
            if makings.setdefault(prefix, Making(digest)).digest != digest
        ]
        if changed and not self.redate:
            for key, value in settings.items():
                if before.settings.get(key, value) != value:
                    raise ConfigurationError(
                        f'{key} is "{value}", but the store was published with '
                        f'"{before.settings[key]}", which records show: restore that value, or run '
                        "`sheaf publish --redate` to give them new datestamps"
                    )
        for prefix in changed:
            self.runtime.say(
                f"the XML of {prefix} has changed: all its records get a new datestamp"
            )
            makings[prefix] = Making(digests[prefix], UNSTAMPED)
        if makings == before.formats and settings == before.settings:
            return before
        return replace(before, formats=makings, settings=settings)

    def _files(self, table: str) -> list[str]:
        return intake.files(self.store, self._runs, self._keys, table)
