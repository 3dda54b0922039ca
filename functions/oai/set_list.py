"""The list of sets: sets with records first, each once, even if snapshots are published meanwhile.

OAI-PMH 2.0, sections 2.6 and 4.6. The sets of a list and their order are those of the publish at
which the list began. Sets never vanish. Each records the publishes at which it gained and lost its
last live record. So a later snapshot gives the same list if the list's own snapshot is retired.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from functions.config.configuration import Configuration
from functions.oai import token as tokens
from functions.oai.answer import NamedSet, Resumption, SetList
from functions.oai.request import NO_SETS, OaiRequest, error
from functions.oai.token import (
    EMPTIED,
    LIVE,
    NAMED,
    SetCursor,
    Token,
    find_manifest,
    is_known,
    name_set,
)
from functions.reading.as_of import PointerReading
from functions.reading.repository import Repository, SetRow
from functions.snapshot import instant, oai_name
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Manifest


def configured_sets(configuration: Configuration) -> tuple[str, ...]:
    """Return the sets that the configuration names, sorted; they exist even without records."""
    rules = (rule["set"] for rule in configuration["sets.rules"])
    names, descriptions = configuration["sets.names"], configuration["sets.descriptions"]
    return tuple(sorted({*names, *descriptions, *rules}))


class SetListService:
    """Answers ListSets."""

    def __init__(self, repository: Repository, configuration: Configuration):
        self._repository = repository
        self._names = configuration["sets.names"]
        self._descriptions = configuration["sets.descriptions"]
        self._configured = configured_sets(configuration)

    def page(self, request: OaiRequest, reading: PointerReading, limit: int) -> SetList:
        """Return the requested page as of `reading`, with up to `limit` sets."""
        retired = False
        if request.token is None:
            manifest = self._repository.manifest(reading.entry.snapshot)
            place, cursor = SetCursor(_newest(manifest), LIVE, ""), 0
            lacking = () if manifest.origin_sets else self._lacking(manifest, place.sequence)
            size = manifest.origin_sets or manifest.sets + len(lacking)
        else:
            # Another reader's clock may be ahead, and the store's id may begin with that snapshot.
            newest = self._repository.manifest(reading.reached)
            token = Token.of_store(request.token, request.verb, newest)
            if not is_known(self._repository, token.snapshot, reading):
                raise tokens.refusal()
            manifest, retired = find_manifest(self._repository, token.snapshot, reading)
            token = name_set(self._repository, manifest, token, self._configured)
            resumed = SetCursor.from_text(token.after)
            if resumed is None:
                raise tokens.refusal()
            place, cursor, size = resumed, token.cursor, token.size
        try:
            rows = self._rows(manifest, place, limit + 1)
        except MissingObject:
            # The snapshot was retired after its manifest was read.
            if manifest.snapshot >= reading.entry.snapshot:
                raise
            manifest, retired = self._repository.manifest(reading.entry.snapshot), True
            rows = self._rows(manifest, place, limit + 1)
        if not rows:
            raise tokens.refusal()
        shown = self._page(manifest, rows, limit, cursor, size)
        more = shown.resumption is not None and shown.resumption.text != ""
        return replace(shown, pinned=more and cursor > 0 and not retired)

    def _page(
        self,
        manifest: Manifest,
        rows: Sequence[tuple[SetCursor, SetRow | str | None]],
        limit: int,
        cursor: int,
        size: int,
    ) -> SetList:
        more, rows = len(rows) > limit, rows[:limit]
        reached, text = cursor + len(rows), ""
        size = max(size, reached + 1) if more else reached
        if more:
            text = Token(
                verb="ListSets",
                snapshot=manifest.snapshot,
                after=rows[-1][0].to_text(),
                cursor=reached,
                size=size,
                namespace=manifest.namespace,
                store=manifest.store,
            ).to_text()
        return SetList(
            tuple(self._name_set(manifest, place.spec, row) for place, row in rows),
            Resumption(text, size, cursor) if more or cursor else None,
            manifest.snapshot,
        )

    def _rows(
        self, manifest: Manifest, place: SetCursor, limit: int
    ) -> Sequence[tuple[SetCursor, SetRow | str | None]]:
        """Return up to `limit` sets behind a place; a set without records has None as row.

        The sets of a mirror are those that its origin lists, with and without records, by name.
        """
        if manifest.origin_sets:
            after = place.spec if place.stage == NAMED else ""
            listed = self._repository.origin_sets(manifest, after, limit)
            return [(SetCursor(place.sequence, NAMED, spec), name) for spec, name in listed]
        if not (manifest.sets or self._configured):
            raise error(NO_SETS, "This repository has no sets.")
        rows: list[tuple[SetCursor, SetRow | None]] = []
        for stage in range(place.stage, NAMED + 1):
            after = place.spec if stage == place.stage else ""
            for spec, row in self._sets_of_stage(
                manifest, SetCursor(place.sequence, stage, after), limit - len(rows)
            ):
                rows.append((SetCursor(place.sequence, stage, spec), row))
            if len(rows) == limit:
                break
        return rows

    def _sets_of_stage(
        self, manifest: Manifest, place: SetCursor, limit: int
    ) -> Iterator[tuple[str, SetRow | None]]:
        """Yield up to `limit` sets of one stage behind a place in it."""
        if place.stage == NAMED:
            behind = [s for s in self._lacking(manifest, place.sequence) if s > place.spec]
            yield from ((spec, None) for spec in behind[:limit])
            return
        # Empty sets may be few among many, so the search stops at their known number.
        if place.stage == EMPTIED and place.sequence == _newest(manifest):
            limit = min(limit, manifest.emptied)
        if limit:
            live = place.stage == LIVE
            rows = self._repository.sets(manifest, place.spec, limit, place.sequence, live=live)
            yield from ((row.spec, row) for row in rows)

    def _lacking(self, manifest: Manifest, sequence: int) -> Sequence[str]:
        """Return the configured sets that had no record yet at a publish."""
        if not self._configured:
            return ()
        births = self._repository.births(manifest, self._configured)
        return [s for s in self._configured if s not in births or births[s] > sequence]

    def _name_set(self, manifest: Manifest, spec: str, row: SetRow | str | None) -> NamedSet:
        if isinstance(row, str):
            name = oai_name.set_name(spec, self._names, row)
            return NamedSet(spec, name, (), 0, 0, None, None)
        live, deleted = (row.live, row.records - row.live) if row else (0, 0)
        if row:  # no datestamp is older than a change of the format's rendering
            floors = [m.since for m in manifest.formats.values() if m.since]
            row = replace(row, last=max([row.last, *floors]))
        summary = "1 record" if live == 1 else f"{live} records"
        if row:
            dates = map(instant.to_text, (row.first, row.last))
            summary += ", datestamps from {} to {}".format(*dates)
        own = self._descriptions.get(spec)
        return NamedSet(
            spec,
            oai_name.set_name(spec, self._names, row.name if row else None),
            (own, summary) if own else (summary,),
            live,
            deleted,
            row.first if row else None,
            row.last if row else None,
        )


def _newest(manifest: Manifest) -> int:
    return manifest.sequences[-1].number if manifest.sequences else 0
