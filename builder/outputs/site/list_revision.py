"""Revision of a list after a publish: which of its pages are written, and in which order."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from builder.outputs.site.chain import PageChain
from builder.outputs.site.set_pages import SetPages, SetPlan
from builder.outputs.site.site_files import SiteFiles
from builder.outputs.site.site_lists import SiteList, SiteSnapshot
from functions.oai.render.template_filters import escape
from functions.snapshot.manifest import Span
from functions.snapshot.site_names import chain_key, page_key

Documents = Iterator[tuple[str, bytes]]
"""Names of files, and their content."""


@dataclass(slots=True)
class ListRevision:
    """A list whose records up to the position `last` are in files.

    `before` is its chain, and `rest` has the pages that stay, with their `ranges`. The `dirty` ones
    hold records that left them. `chain` is the new chain, once the new pages were written. `whole`
    is the revision of the list of all records, if this is one of a set; `counts` has the numbers of
    records of each set that stay on those pages where changed items were.
    """

    snapshot: SiteSnapshot
    list_: SiteList
    last: int
    before: PageChain
    rest: PageChain
    ranges: Mapping[int, Span]
    dirty: set[int]
    chain: PageChain
    whole: "ListRevision | None"
    counts: Mapping[int, Collection[str]]
    _in_file: PageChain
    _pages: SetPages | None = None

    @staticmethod
    def plan(
        snapshot: SiteSnapshot,
        files: SiteFiles,
        list_: SiteList,
        last: int,
        positions: Mapping[str, int],
        whole: "ListRevision | None" = None,
    ) -> "ListRevision":
        """Return the revision after changes of items, which had these positions before."""
        data = files.find(chain_key(list_.folder, list_.spec))
        before = PageChain.from_json(data) if data else PageChain()
        rest = before.select(last)
        ranges = rest.ranges(snapshot.spans(list_))
        suspects = defaultdict[int, list[str]](list)
        for name, position in positions.items():
            if (first := rest.find_page(position)) is not None:
                suspects[first].append(name)
        dirty = _find_dirty(files, list_, suspects, rest.shared)
        empty = {f for f in dirty if next(snapshot.cut(list_, ranges[f], 1), None) is None}
        counts: Mapping[int, Collection[str]] = whole.counts if whole else {}
        if whole is None:
            counts = snapshot.count_sets(list_, {f: ranges[f] for f in sorted(suspects)})
        else:
            shared = suspects.keys() & rest.shared & counts.keys()
            empty |= {f for f in shared if list_.spec not in counts[f]}
        rest = rest.select(last, empty)
        chains = before, rest, ranges, dirty, rest
        return ListRevision(snapshot, list_, last, *chains, whole, counts, before)

    def list_new(self) -> Documents:
        """Yield the pages behind `last`, those of all records before those of sets."""
        spec, plan = self.list_.spec, None
        if self.whole is not None and spec is not None:
            plan = self.whole.plan_set(spec, self.rest)
        for page, data, chain in self.snapshot.link(self.list_, self.rest, self.last + 1, plan):
            self.chain = chain
            if page is not None:
                yield page_key(self.list_.folder, spec, page.first), data

    def plan_set(self, spec: str, chain: PageChain) -> SetPlan:
        """Return which of the new pages a set shares, whose list is `chain` so far."""
        if self._pages is None:
            self._pages = self.snapshot.find_sets(self.list_, self.chain, self.last + 1)
        return self._pages.plan(spec, chain)

    def list_shared(self) -> Documents:
        """Yield the chain with shared pages, which are to lose what moved to others.

        Own pages stay in it until no page leads to them.
        """
        if self.chain.shared:
            gone = self.before.shared - self.chain.shared
            chain = self.before.select(self.last, gone).append(*self.chain.list_behind(self.last))
            yield from self._write_chain(chain)

    def list_links(self) -> Documents:
        """Yield the page that leads to the new ones."""
        yield from self._list_again(self.rest.firsts[-1:])

    def list_others(self) -> Documents:
        """Yield the other pages that lost a record, or whose next page has gone."""
        yield from self._list_again(self.rest.firsts[:-1])

    def list_chain(self) -> Documents:
        """Yield the chain, if it has changed."""
        yield from self._write_chain(self.chain)

    def _write_chain(self, chain: PageChain) -> Documents:
        if chain != self._in_file:
            self._in_file = chain
            yield chain_key(self.list_.folder, self.list_.spec), chain.to_json()

    def list_superseded(self) -> Iterator[str]:
        """Yield the names of pages that are in the chain no more."""
        for first in {*self.before.own} - {*self.chain.own}:
            yield page_key(self.list_.folder, self.list_.spec, first)

    def _list_again(self, firsts: tuple[int, ...]) -> Documents:
        frames, before = self.chain.frames(), self.before.frames()
        for first in firsts:
            if first in self.chain.shared:
                continue
            if first in self.dirty or frames[first] != before[first]:
                page = replace(next(self.snapshot.cut(self.list_, self.ranges[first])), first=first)
                name = page_key(self.list_.folder, self.list_.spec, first)
                yield name, self.snapshot.write_page(self.list_, page, frames[first])


PHASES: tuple[Callable[[ListRevision], Documents], ...] = (
    ListRevision.list_new,
    ListRevision.list_shared,
    ListRevision.list_links,
    ListRevision.list_others,
    ListRevision.list_chain,
)
"""What is written of all lists in turn. So no link leads to a missing page, and a record that moved
is behind a page before it leaves its old one."""


def _find_dirty(
    files: SiteFiles,
    list_: SiteList,
    suspects: Mapping[int, Sequence[str]],
    shared: Collection[int],
) -> set[int]:
    """Return its own pages that still hold one of the items, which left their positions."""
    dirty = set[int]()
    for first in suspects.keys() - shared:
        data = files.find(page_key(list_.folder, list_.spec, first))
        marks = (f"<identifier>{escape(name)}</identifier>".encode() for name in suspects[first])
        if data is None or any(mark in data for mark in marks):
            dirty.add(first)
    return dirty
