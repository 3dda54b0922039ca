"""Revision of a list after a publish: which of its pages are written, and in which order."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from builder.outputs.site.chain import PageChain
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
    hold records that left them. `chain` is the new chain, once the new pages were written.
    """

    snapshot: SiteSnapshot
    list_: SiteList
    last: int
    before: PageChain
    rest: PageChain
    ranges: Mapping[int, Span]
    dirty: set[int]
    chain: PageChain

    @staticmethod
    def plan(
        snapshot: SiteSnapshot,
        files: SiteFiles,
        list_: SiteList,
        last: int,
        positions: Mapping[str, int],
    ) -> "ListRevision":
        """Return the revision after changes of items, which had these positions before."""
        data = files.find(chain_key(list_.folder, list_.spec))
        before = PageChain.from_json(data) if data else PageChain()
        rest = before.select(last)
        ranges = rest.ranges(snapshot.spans(list_))
        dirty = _find_dirty(files, list_, rest, positions)
        empty = {f for f in dirty if next(snapshot.cut(list_, ranges[f], 1), None) is None}
        rest = rest.select(last, empty)
        return ListRevision(snapshot, list_, last, before, rest, ranges, dirty, rest)

    def list_new(self) -> Documents:
        """Yield the pages behind `last`."""
        for page, data, chain in self.snapshot.link(self.list_, self.rest, self.last + 1):
            self.chain = chain
            yield page_key(self.list_.folder, self.list_.spec, page.first), data

    def list_links(self) -> Documents:
        """Yield the page that leads to the new ones."""
        yield from self._list_again(self.rest.firsts[-1:])

    def list_others(self) -> Documents:
        """Yield the other pages that lost a record, or whose next page has gone."""
        yield from self._list_again(self.rest.firsts[:-1])

    def list_chain(self) -> Documents:
        """Yield the chain, if it has changed."""
        if self.chain != self.before:
            yield chain_key(self.list_.folder, self.list_.spec), self.chain.to_json()

    def list_superseded(self) -> Iterator[str]:
        """Yield the names of pages that are in the chain no more."""
        for first in {*self.before.firsts} - {*self.chain.firsts}:
            yield page_key(self.list_.folder, self.list_.spec, first)

    def _list_again(self, firsts: tuple[int, ...]) -> Documents:
        frames, before = self.chain.frames(), self.before.frames()
        for first in firsts:
            if first in self.dirty or frames[first] != before[first]:
                page = replace(next(self.snapshot.cut(self.list_, self.ranges[first])), first=first)
                name = page_key(self.list_.folder, self.list_.spec, first)
                yield name, self.snapshot.write_page(self.list_, page, frames[first])


PHASES: tuple[Callable[[ListRevision], Documents], ...] = (
    ListRevision.list_new,
    ListRevision.list_links,
    ListRevision.list_others,
    ListRevision.list_chain,
)
"""What is written of all lists in turn. So no link leads to a missing page, and a record that moved
is behind a page before it leaves its old one."""


def _find_dirty(
    files: SiteFiles, list_: SiteList, chain: PageChain, positions: Mapping[str, int]
) -> set[int]:
    """Return the pages that still hold one of the items, which left its position."""
    suspects = defaultdict[int, list[str]](list)
    for name, position in positions.items():
        if (first := chain.find_page(position)) is not None:
            suspects[first].append(name)
    dirty = set[int]()
    for first, names in suspects.items():
        data = files.find(page_key(list_.folder, list_.spec, first))
        marks = (f"<identifier>{escape(name)}</identifier>".encode() for name in names)
        if data is None or any(mark in data for mark in marks):
            dirty.add(first)
    return dirty
