"""The objects of a store in the order of reference: what is named comes before what names it.

They are listed in stages (builder.store.copier). At most the keys of one run or dataset, and those
of the snapshots, are in memory at a time.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from builder.kinds import KINDS
from builder.obi import key, log
from builder.obi.content import Redirect, Version
from builder.obi.history import ALIVE, COMMIT, MEMBERS, OPEN, history, is_open, standing
from builder.outputs import OUTPUTS
from builder.snapshot import views
from builder.store.copier import (
    DAMAGED,
    CopiedObject,
    ForeignTarget,
    Stage,
    TargetListing,
    read_document,
)
from builder.threads import map_requests
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, StoreError
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

LASTING = (key.ROOT, *(prefix for kind in KINDS for prefix in kind.copied))
"""Prefixes of the objects that no snapshot names."""
PLACES = (
    layout.RECORDS,
    layout.SNAPSHOTS,
    *LASTING,
    *(prefix for output in OUTPUTS for prefix in output.copied),
)
"""Prefixes of all objects that are copied, but for those in the root of the store."""


def list_files(source: Writer, manifests: Sequence[Manifest]) -> tuple[Stage, Stage]:
    """Return the data files and the leaves that the manifests name, each once."""
    catalogue = Catalogue(source)
    files: dict[str, int] = {}
    leaves: set[str] = set()
    for manifest in manifests:
        for table, references in manifest.tables.items():
            leaves.update(reference.key for reference in references)
            files.update((file.key, file.bytes) for file in catalogue.files(manifest, table))

    def order(named: Iterable[tuple[str, int]]) -> list[CopiedObject]:
        return [CopiedObject(k, size, layout.digest_of(k) or "") for k, size in sorted(named)]

    # A leaf that is missing has no size: reading it says so.
    sizes = zip(sorted(leaves), map_requests(source.size, sorted(leaves)), strict=True)
    return order(files.items()), order((leaf, size or 0) for leaf, size in sizes)


def list_manifests(source: Writer, manifests: Sequence[Manifest]) -> Iterator[Stage]:
    """Yield the views and the manifest of each snapshot. Raises DamagedStore for wrong views."""
    catalogue = Catalogue(source)
    for manifest in manifests:
        document = read_document(source, manifest.views_key, replaced=True)
        expected = partial(views.store_views, catalogue, manifest)
        if problem := views.fault(manifest, document.data or b"", expected):
            raise DamagedStore(f"{document.key}: {problem}; `sheaf verify --repair` rewrites it")
        yield [document]
        yield [read_document(source, manifest.key)]  # last: it shows that the snapshot exists


class RunList:
    """The runs of the obi store that have ended.

    `bytes` are those that the target lacks. `there` counts the objects of runs that it has whole.
    """

    def __init__(self, source: Writer, target: Writer, there: TargetListing) -> None:
        """Compare the runs of the stores.

        Raises ForeignTarget if the target has other runs, and DamagedStore if the source's runs do
        not form a chain.
        """
        self._source = source
        self._runs = {run.tist: run for run in history(source)}
        ended = {t: 0 for t, members in standing(source).items() if not is_open(members)}
        if ended and target.folds_case():
            raise StoreError(
                f"{target.address}: this disk ignores case in file names, but ids of files differ "
                "by case; choose another place"
            )
        _check_runs(source, target, ended.keys())
        self._lacking: set[int] = set()
        self.bytes = self.there = 0
        for entry in source.entries(key.ROOT):
            tist = key.run_of(entry.key) or key.tist_of(entry.key)
            if tist not in ended or entry.key == key.run(tist) + ALIVE:
                continue
            if there.has(entry.key, entry.bytes):
                ended[tist] += 1
            else:
                self._lacking.add(tist)
                self.bytes += entry.bytes
        self.there = sum(count for tist, count in ended.items() if tist not in self._lacking)
        self._packs = {entry.key: entry.bytes for entry in source.entries(key.PACKS)}
        packs = {where for where, size in self._packs.items() if not there.has(where, size)}
        self.there += len(self._packs) - len(packs)
        if packs:  # of an open run, or of one that the target lacks
            named = map_requests(lambda r: log.read_packs(source, r), [*self._runs.values()])
            packs &= {key.pack(name) for names in named for name in names}
        self.bytes += sum(map(self._packs.__getitem__, packs))
        self._lacking_packs = sorted(packs)

    def stages(self) -> Iterator[Stage]:
        """Yield the packs, the runs in the order of their writing, and the tables of files.

        Raises DamagedStore if the source lacks an object that a log names.
        """
        sizes = self._packs
        yield [CopiedObject(k, sizes[k], k.removeprefix(key.PACKS)) for k in self._lacking_packs]
        for tist in sorted(self._lacking):
            yield from self._list_run(tist)
        tables = ((e, key.parse_file_table(e.key)) for e in self._source.entries(key.FILES))
        yield (CopiedObject(e.key, e.bytes, table[1]) for e, table in tables if table)

    def _list_run(self, tist: int) -> Iterator[Stage]:
        prefix, place = key.run(tist), key.ROOT + key.folder(tist)
        members = {entry.key: entry.bytes for entry in self._source.entries(prefix)}
        content = {entry.key: entry.bytes for entry in self._source.entries(place)}
        sizes, digests, packs = content | members, {}, set()
        if run := self._runs.get(tist):  # an abandoned run has no log
            digests = {**run.files, prefix + COMMIT: run.digest}
            for row in log.read_rows(self._source, run, "row IN ('version', 'redirect')"):
                if isinstance(row, Version) and row.pack is not None:
                    packs.add(key.pack(row.pack))
                elif isinstance(row, Version):
                    digests[row.key] = row.sha256
                # Without a key, only a slash differs; with another, an earlier run recorded it.
                elif isinstance(row, Redirect) and row.key and row.key.startswith(place):
                    digests[row.key] = ""
        if lost := sorted((digests.keys() - sizes.keys()) | (packs - self._packs.keys())):
            raise DamagedStore(f"{self._source.address} has no {lost[0]}: {DAMAGED}")
        stages = [[prefix + OPEN], content, *([prefix + name] for name in MEMBERS if name != OPEN)]
        for stage in stages:
            yield [CopiedObject(k, sizes[k], digests.get(k, "")) for k in stage if k in sizes]


def _check_runs(source: Writer, target: Writer, ended: Iterable[int]) -> None:
    """Raise ForeignTarget unless all runs of the target are runs of the source."""
    there = [
        (t, n) for t, names in standing(target).items() for n in sorted(names & {OPEN, COMMIT})
    ]

    def is_same(place: tuple[int, str]) -> bool:
        where = key.run(place[0]) + place[1]
        return place[0] in ended and source.read(where) == target.read(where)

    for (tist, _), same in zip(there, map_requests(is_same, there), strict=True):
        if not same:
            raise ForeignTarget(f"{target.address} has another run {tist}: choose an empty place")
