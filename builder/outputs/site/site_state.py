"""The state of a site: what the next update needs, and which files belong to it."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from builder.outputs.site.chain import PageChain
from builder.outputs.site.item_index import ItemIndex
from builder.outputs.site.site_files import SiteFiles, list_parts
from builder.snapshot.orphans import ORPHAN_AGE
from functions.snapshot.errors import DamagedStore
from functions.snapshot.layout import SITE, SITE_ROUTER
from functions.snapshot.seal import Instant, Struct, build, encode, refuse_damage, replace

ROUTER = SITE_ROUTER.removeprefix(SITE)
"""What a router reads; writing it commits an update."""
STATE = "state.json"
PROGRESS = "progress.json"
"""How far an update came that writes whole lists."""
LEASE = "lease"
RECORDS = "get/"
"""Below it are answers to GetRecord, with `site.records = "files"`."""
WWW = "www/"
"""Below it lies what is not OAI-PMH, as a plain web server sends it."""
VERSION = 2
"""The version of the layout, in `router.json` and `state.json`."""


class SiteState(Struct, frozen=True):
    """A site as of `snapshot` of a store, whose last position is `position`.

    `settings` is a digest of what all files depend on. `items` are in the index, whose buckets have
    `digits`, and which counts `kinds`. `lists` maps the folder of each list to how it was made.
    `documents` maps the other names to digests. With `is_packed`, each of those and each page has a
    gzip beside it. With `has_records`, each record has a file in each format. `gone` are superseded
    names, each with the instant when it was: readers may still need them.
    """

    store: str
    snapshot: int
    position: int
    settings: str
    items: int
    digits: int
    kinds: tuple[str, ...]
    lists: Mapping[str, str]
    documents: Mapping[str, str]
    is_packed: bool
    has_records: bool = False
    gone: Mapping[str, Instant] = {}

    def write(self, files: SiteFiles) -> None:
        """Write the state. Raises StoreError."""
        files.write(STATE, encode({"version": VERSION, "state": self}))

    @staticmethod
    def read(files: SiteFiles) -> "SiteState | None":
        """Return the state of a site; None without one. Raises DamagedStore and StoreError."""
        if (data := files.find(STATE)) is None:
            return None
        with refuse_damage(STATE):
            document = json.loads(data)
            if document["version"] != VERSION:
                raise ValueError(f"version is {document['version']!r}")
            return build(SiteState, document["state"])

    def chains(self, files: SiteFiles, names: Iterable[str]) -> Iterator[tuple[str, PageChain]]:
        """Yield the chains among the `names` of a site, each with its own. Raises DamagedStore."""
        for name in names:
            folder, _, rest = name.partition("/all.json")
            if rest or folder == name:
                folder, _, rest = name.partition("/set/")
                if "/" in rest or not rest.endswith(".json"):
                    continue
            if folder in self.lists and (data := files.find(name)) is not None:
                try:
                    yield name, PageChain.from_json(data)
                except DamagedStore as error:
                    raise DamagedStore(f"{name}: {error}") from error

    def expect(self, files: SiteFiles, names: Collection[str]) -> Iterator[str]:
        """Yield the names that a site must have, given those that it has. Raises DamagedStore."""
        yield from (ROUTER, STATE)
        for folder in self.lists:
            yield f"{folder}/all.json"
        documents = [*self.documents, *ItemIndex(files, self.digits).names()]
        for name in documents:
            yield from list_parts(name, is_packed=self.is_packed)
        if self.has_records:  # which there are follows from the lists alone
            places = tuple(f"{RECORDS}{list_.split('/')[1]}/" for list_ in self.lists)
            yield from (name for name in names if name.startswith(places))
        for name, chain in self.chains(files, names):
            yield name
            whole = name.partition("/set/")[0] + "/all"
            for first in chain.firsts:
                stem = whole if first in chain.shared else name.removesuffix(".json")
                yield from list_parts(f"{stem}/{first}.xml", is_packed=self.is_packed)

    def retire(self, files: SiteFiles, now: datetime | None) -> set[str]:
        """Remove what was superseded a day before `now`, or without it all strays; return these.

        Raises DamagedStore and StoreError.
        """
        if now is None:
            names = {*self.list_strays(files, [*files.list_names()])}
        else:
            names = {name for name, since in self.gone.items() if since <= now - ORPHAN_AGE}
        if names:
            files.remove(names)
            left = {name: at for name, at in self.gone.items() if name not in names}
            replace(self, gone=left).write(files)
        return names

    def list_strays(self, files: SiteFiles, names: Collection[str]) -> list[str]:
        """Return those of the names of a site that do not belong to it. Raises DamagedStore."""
        expected = {*self.expect(files, names), LEASE, PROGRESS}
        return [name for name in names if name not in expected]
