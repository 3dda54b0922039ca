"""Update of a site: whole lists where there are none, else the pages that a publish changes.

A reader never meets a missing file: new pages are written first, then those that link to them or
lost a record, then the chain of the list, the index, and `router.json` last. What was superseded
stays for a day, for harvests in progress. After a withdrawal it goes at once. A killed update is
done again from `state.json`, and one that writes whole lists goes on behind what it wrote.
"""

import json
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from itertools import chain as joined
from itertools import count

from builder.outputs.site.chain import PageChain
from builder.outputs.site.documents import list_documents, write_router
from builder.outputs.site.item_index import Entry, ItemIndex, count_digits
from builder.outputs.site.list_revision import PHASES, ListRevision
from builder.outputs.site.set_pages import SetPlan
from builder.outputs.site.site_files import SiteFiles, list_parts
from builder.outputs.site.site_lists import SiteList, SiteSnapshot
from builder.outputs.site.site_state import LEASE, PROGRESS, RECORDS, ROUTER, STATE, SiteState
from builder.runtime import Advance, Runtime
from builder.snapshot import recovery
from builder.snapshot.orphans import ORPHAN_AGE
from builder.store.durable import batches
from builder.store.lease import Leases
from functions.config.configuration import Configuration
from functions.http.http_message import document_digest
from functions.kinds import KINDS, find_kind
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import RecordSelection, read_batches
from functions.snapshot import oai_name
from functions.snapshot.errors import DamagedStore
from functions.snapshot.layout import SITE
from functions.snapshot.manifest import Span
from functions.snapshot.seal import replace as revise
from functions.snapshot.site_names import chain_key, digest_name, page_key
from functions.snapshot.store import Writer
from functions.store.files import FILE

_CHANGED = (
    "SELECT identifier, kind, position, list_concat(sets, left_sets), "
    f"coalesce(deleted AND reason IS NOT NULL, false) FROM {FILE} "
    "WHERE position > $last ORDER BY position"
)
_OF_LISTS = (
    *("repository.base_url", "repository.name", "rights.", "formats.", "pages."),
    *("content.address", "site.gzip", "site.records"),
)
_OF_DOCUMENTS = ("repository.", "identify.", "sets.", "site.")
"""The keys, or what keys begin with, on which the pages of lists depend, and other documents."""
_ROWS = 4096


def update_site(store: Writer, configuration: Configuration, runtime: Runtime) -> None:
    """Bring the site in a store to its newest snapshot, or remove it if `publish.site` is off.

    Only one process does so at a time. Raises ConfigurationError, Conflict and StoreError.
    """
    files = SiteFiles(store, SITE, is_packed=configuration["site.gzip"])
    if not configuration["publish.site"]:
        if any(store.tag(SITE + name) is not None for name in (ROUTER, STATE)):
            runtime.say("publish.site is off: the site in the store is removed")
            store.remove(SITE + ROUTER)
            store.remove(*store.keys(SITE))
        return
    leases = Leases(store, lambda: runtime.clock().timestamp(), runtime.sleep)
    with closing(DuckRepository(store)) as repository:

        def open_update() -> "SiteUpdate | None":
            newest = recovery.current(store)[0].newest()
            if newest is None:
                return None
            manifest = repository.manifest(newest.snapshot)
            snapshot = SiteSnapshot.of(repository, manifest, configuration)
            return SiteUpdate(snapshot, files, runtime)

        update = open_update()
        if update is not None and not update.is_current():
            with leases.hold(SITE + LEASE, lambda: None):
                if (update := open_update()) is not None:  # another process may have published
                    update.run()


@dataclass(frozen=True, slots=True)
class ChangedItem:
    """An item that changed: its kind and position, the sets that it is or was in, with those above.

    `is_withdrawn` tells whether it was withdrawn, so that nothing of it may stay.
    """

    kind: str
    position: int
    sets: frozenset[str]
    is_withdrawn: bool


@dataclass(slots=True)
class SiteUpdate:
    """An update of a site to a snapshot."""

    snapshot: SiteSnapshot
    files: SiteFiles
    runtime: Runtime
    _done: tuple[int, PageChain] = field(default=(0, PageChain()), init=False)
    """The number of whole lists that were written, and the pages of the next one."""

    def is_current(self) -> bool:
        """Return whether nothing is to be done. Raises StoreError."""
        state, now = self._read_state(), self.runtime.clock()
        return (
            state is not None
            and state.snapshot == self.snapshot.manifest.snapshot
            and state.settings == self._digest_settings()
            and all(since > now - ORPHAN_AGE for since in state.gone.values())
        )

    def run(self) -> None:
        """Bring the site to the snapshot, and remove what was superseded. Raises StoreError."""
        state, now, settings = self._read_state(), self.runtime.clock(), self._digest_settings()
        manifest = self.snapshot.manifest
        if state is None or state.settings.split()[0] != settings.split()[0]:
            self._write_anew(settings, state, now)
        elif (state.snapshot, state.settings) == (manifest.snapshot, settings):
            state.retire(self.files, now)
        elif not self._revise(settings, state, now):
            self.runtime.say("the index of the site lacks items: all is written anew")
            self._write_anew(settings, state, now)

    def _read_state(self) -> SiteState | None:
        """Return the state of the site, if it is one of an earlier snapshot of this store."""
        manifest = self.snapshot.manifest
        with suppress(DamagedStore):  # then all is made anew
            state = SiteState.read(self.files)
            if (
                state is not None
                and state.store == manifest.store
                and state.snapshot <= manifest.snapshot
                and state.snapshot not in manifest.skipped
            ):
                return state
        return None

    def _digest_settings(self) -> str:
        """Return a digest of the settings of lists, and one of those of the other documents."""
        values = self.snapshot.configuration.values
        parts = (
            json.dumps([values[name] for name in sorted(values) if name.startswith(names)])
            for names in (_OF_LISTS, _OF_DOCUMENTS)
        )
        shown = " replay" if self.snapshot.archive else ""
        return " ".join(sha256(part.encode()).hexdigest()[:32] for part in parts) + shown

    def _write_anew(self, settings: str, before: SiteState | None, now: datetime) -> None:
        """Write everything, then remove what does not belong to it."""
        manifest, folders = self.snapshot.manifest, self.snapshot.list_folders()
        chains = self._write_lists(folders)
        total = sum(manifest.kinds().values())
        kinds = tuple(manifest.kinds())
        index = ItemIndex(self.files, count_digits(total))
        items = index.write(self._list_items(kinds))
        state = SiteState(
            store=manifest.store,
            snapshot=manifest.snapshot,
            position=manifest.last_position,
            settings=settings,
            items=items,
            digits=index.digits,
            kinds=kinds,
            lists={folder: self.snapshot.making(list_) for folder, list_ in folders.items()},
            documents={},
            is_packed=self.files.is_packed,
            has_records=self._has_records,
        )
        self._write_records({}, dict.fromkeys(folders, 1), folders)
        is_apart = before is None or any(
            item.is_withdrawn for item in self._find_changed(before.position).values()
        )
        self._commit(state, before, now, chains, is_apart=is_apart)

    def _revise(self, settings: str, state: SiteState, now: datetime) -> bool:
        """Write what changed since a state; return whether the index has all items then."""
        manifest, folders = self.snapshot.manifest, self.snapshot.list_folders()
        makings = {folder: self.snapshot.making(list_) for folder, list_ in folders.items()}
        anew = {f: list_ for f, list_ in folders.items() if state.lists.get(f) != makings[f]}
        chains = self._write_lists(anew) if anew else set()
        changed = self._find_changed(state.position)
        index = ItemIndex(self.files, state.digits)
        old = index.find(changed)
        rest = [list_ for folder, list_ in folders.items() if folder not in anew]
        revisions = self._plan(rest, state.position, changed, old)
        for phase in PHASES:
            self.files.write_all(joined.from_iterable(map(phase, revisions)))
        gone = joined.from_iterable(revision.list_superseded() for revision in revisions)
        begin = {folder: 1 if folder in anew else state.position + 1 for folder in folders}
        self._write_records(changed, begin, folders)
        gone = joined.from_iterable(list_parts(n, is_packed=state.is_packed) for n in gone)
        kinds = tuple(dict.fromkeys((*state.kinds, *manifest.kinds())))
        items = sum(manifest.kinds().values())
        # An interrupted update may have written some entries, of new items or of others.
        least = state.items + len(changed) - len(old)
        unsure = sum(position > state.position for _, position, *_ in old.values())
        if not least <= items <= least + unsure:
            return False
        if index.is_overfull(items):
            index = ItemIndex(self.files, count_digits(items))
            index.write(self._list_items(kinds))
        elif changed:
            places = ((name, item.kind, item.position) for name, item in changed.items())
            index.revise(self._list_entries(places, kinds))
        after = revise(
            state,
            settings=settings,
            snapshot=manifest.snapshot,
            position=manifest.last_position,
            items=items,
            digits=index.digits,
            kinds=kinds,
            lists=makings,
            gone={**state.gone, **dict.fromkeys(gone, now)},
        )
        is_apart = any(item.is_withdrawn for item in changed.values())
        is_moved = (
            bool(anew) or state.lists.keys() != makings.keys() or index.digits != state.digits
        )
        self._commit(after, state, now, chains if is_moved or is_apart else None, is_apart=is_apart)
        return True

    def _plan(
        self,
        lists: Sequence[SiteList],
        last: int,
        changed: Mapping[str, ChangedItem],
        old: Mapping[str, Entry],
    ) -> list[ListRevision]:
        """Return the revisions of lists, and of those of their sets, that have changed items."""
        members = defaultdict[str | None, list[str]](list)
        for name, item in changed.items():
            for spec in (None, *item.sets):
                members[spec].append(name)
        revisions: list[ListRevision] = []
        wholes: dict[str, ListRevision] = {}
        for spec, names in members.items():
            positions = {name: old[name][1] for name in names if name in old}
            for list_ in lists:
                part, whole = replace(list_, spec=spec), wholes.get(list_.folder)
                revision = ListRevision.plan(
                    self.snapshot, self.files, part, last, positions, whole
                )
                wholes.setdefault(list_.folder, revision)
                revisions.append(revision)
        return revisions

    @property
    def _has_records(self) -> bool:
        return bool(self.snapshot.configuration["site.records"] == "files")

    def _write_records(
        self,
        changed: Iterable[str],
        begin: Mapping[str, int],
        folders: Mapping[str, SiteList],
    ) -> None:
        """Write the files of records from a position on in each list, if they have their own.

        Those of items that are in a format no more go at once, as GetRecord is one answer.
        """
        for folder, list_ in folders.items():
            if list_.is_headers or not self._has_records:
                continue
            place, written = f"{RECORDS}{list_.format.prefix}/", set[str]()
            records = self.snapshot.list_records(list_, begin[folder])
            for batch in batches((f"{place}{digest_name(n)}.xml", data) for n, data in records):
                self.files.write_all(batch)
                parts = (list_parts(n, is_packed=self.files.is_packed) for n, _ in batch)
                written.update(joined.from_iterable(parts))
            changes = (f"{place}{digest_name(name)}.xml" for name in changed)
            names = joined.from_iterable(list_parts(n, is_packed=True) for n in changes)
            others = self.files.list_names(place) if begin[folder] == 1 else names
            self.files.remove([name for name in others if name not in written])

    def _commit(
        self,
        state: SiteState,
        before: SiteState | None,
        now: datetime,
        chains: set[str] | None,
        *,
        is_apart: bool,
    ) -> None:
        """Write the other documents, the router's file and the state; then remove what may go.

        `chains` are those of lists that were written whole; None if no file can be a stray.
        `is_apart`: nothing superseded may stay.
        """
        earlier = before.documents if before else {}
        documents = dict[str, str]()

        def list_changed() -> Iterator[tuple[str, bytes]]:
            for name, data in list_documents(self.snapshot):
                documents[name] = document_digest(data)
                if earlier.get(name) != documents[name]:
                    yield name, data

        self.files.write_all(list_changed())
        parts = (list_parts(n, is_packed=state.is_packed) for n in earlier if n not in documents)
        gone = {**state.gone, **dict.fromkeys(joined.from_iterable(parts), now)}
        state = revise(state, documents=documents, gone=gone)
        self.files.write(ROUTER, write_router(self.snapshot, state.kinds, state.digits))
        if chains is not None:
            state = revise(state, gone=dict.fromkeys(self._clear(state, chains), now))
        removed = [*state.gone] if is_apart else []
        if is_apart:
            state = revise(state, gone={})
        state.write(self.files)
        self.files.remove(removed)
        state.retire(self.files, now)

    def _clear(self, state: SiteState, chains: set[str]) -> list[str]:
        """Remove the chains of lists that have no records any more; return what is a stray."""
        whole = {name.removesuffix("all.json") for name in chains if name.endswith("/all.json")}
        names, stale = list[str](), list[str]()
        for name in self.files.list_names():
            is_old = name.endswith(".json") and name.startswith((*whole,)) and name not in chains
            (stale if is_old else names).append(name)
        self.files.remove(stale)
        return state.list_strays(self.files, names)

    def _write_lists(self, folders: Mapping[str, SiteList]) -> set[str]:
        """Write whole lists; return the names of their chains. A killed one goes on."""
        manifest = self.snapshot.manifest
        making = [manifest.store, manifest.snapshot, self._digest_settings(), *folders]
        key = sha256(json.dumps(making).encode()).hexdigest()
        begun = (0, PageChain())
        with suppress(ValueError, KeyError, DamagedStore):
            progress = json.loads(self.files.find(PROGRESS) or b"{}")
            if progress["key"] == key:
                begun = (
                    progress["lists"],
                    PageChain.from_json(json.dumps(progress["chain"]).encode()),
                )
        total = sum(manifest.kinds().values()) * len(folders)
        chains: set[str] = set()
        with self.runtime.progress(total) as advance:
            for batch in batches(self._list_all(folders, begun, chains, advance)):
                self.files.write_all(batch)
                number, chain = self._done
                document = {"key": key, "lists": number, "chain": json.loads(chain.to_json())}
                self.files.write(PROGRESS, json.dumps(document).encode())
        self.files.remove([PROGRESS])
        return chains

    def _list_all(
        self,
        folders: Mapping[str, SiteList],
        begun: tuple[int, PageChain],
        chains: set[str],
        advance: Advance,
    ) -> Iterator[tuple[str, bytes]]:
        """Yield all files of whole lists, from the list and behind the pages where one began."""
        numbers = count()
        for whole in folders.values():
            chain = yield from self._list_one(next(numbers), whole, None, begun, chains, advance)
            pages = self.snapshot.find_sets(whole, chain, 1)
            for spec in pages.list_specs():
                list_, plan = replace(whole, spec=spec), pages.plan(spec, PageChain())
                yield from self._list_one(next(numbers), list_, plan, begun, chains, advance)

    def _list_one(
        self,
        number: int,
        list_: SiteList,
        plan: SetPlan | None,
        begun: tuple[int, PageChain],
        chains: set[str],
        advance: Advance,
    ) -> Generator[tuple[str, bytes], None, PageChain]:
        """Yield the files of a list; return its chain. It is read if it was written before."""
        key, chain, last = chain_key(list_.folder, list_.spec), PageChain(), 0
        if number < begun[0]:
            if (data := self.files.find(key)) is None:
                return chain
            chains.add(key)
            return PageChain.from_json(data)
        if number == begun[0] and begun[1].firsts:
            last = begun[1].firsts[-1]
            chain = begun[1].select(last - 1)
        for page, data, longer in self.snapshot.link(list_, chain, last, plan):
            self._done, chain = (number, longer), longer
            if page is None:
                continue
            if list_.spec is None:
                advance(page.count)
            yield page_key(list_.folder, list_.spec, page.first), data
        self._done = number + 1, PageChain()
        if list_.spec is None or chain.segments:
            chains.add(key)
            yield key, chain.to_json()
        return chain

    def _find_changed(self, last: int) -> dict[str, ChangedItem]:
        """Return by identifier the items whose listed version lies behind a position."""
        repository, manifest = self.snapshot.repository, self.snapshot.manifest
        changed: dict[str, ChangedItem] = {}
        if last >= manifest.last_position:
            return changed
        groups = repository.catalogue.groups(manifest, "records", last + 1, manifest.last_position)
        for file, blocks in groups:
            rows = repository.files.rows(_CHANGED, file, blocks, last=last)
            for name, kind, position, sets, is_withdrawn in rows:
                # Positions ascend, so the last version of an item is the listed one.
                lineage = frozenset(joined.from_iterable(map(oai_name.set_lineage, sets)))
                changed[name] = ChangedItem(kind, position, lineage, is_withdrawn)
        return changed

    def _list_items(self, kinds: Sequence[str]) -> Iterator[tuple[str, Entry]]:
        """Yield the identifiers and other names of all items with their entries in the index."""
        manifest = self.snapshot.manifest
        selection = RecordSelection(tuple(KINDS), Span(1, manifest.last_position))
        pages = read_batches(self.snapshot.repository, manifest, selection, _ROWS, headers=True)
        records = joined.from_iterable(pages)
        return self._list_entries(((r.identifier, r.kind, r.position) for r in records), kinds)

    def _list_entries(
        self, items: Iterable[tuple[str, str, int]], kinds: Sequence[str]
    ) -> Iterator[tuple[str, Entry]]:
        """Yield the entries of items, given the identifier, kind and position of each."""
        numbers = {kind: number for number, kind in enumerate(kinds)}
        for identifier, kind, position in items:
            yield identifier, (numbers[kind], position)
            if name := find_kind(kind).name_of(self.snapshot.manifest, identifier):
                yield name.lower(), (numbers[kind], position, identifier)
