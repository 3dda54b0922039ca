"""Items as a model has them, and what ingesting makes of them; no word of the builder's SQL."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from builder.intake.captures import Capture
from tests.builder.conftest import NAMESPACE, capture

COUNT = 24
MIMES = ("mime:text:html", "mime:text:plain", "mime:image:png")
COLLECTIONS = ("topic:a", "topic:a:b", "topic:c")
SETS = (
    "mime",
    "mime:text",
    *MIMES,
    "domain:cz:example",
    "domain:cz:example:h1",
    "topic",
    *COLLECTIONS,
)
DIGESTS = ("A", "B", "C")


@dataclass(frozen=True)
class Item:
    """What is listed of an item. `withdrawn`: a tombstone that stays whatever is ingested."""

    title: str | None
    sets: tuple[str, ...]
    deleted: bool = False
    withdrawn: bool = False
    left: tuple[str, ...] = ()
    """The most specific sets that it was in before, and is not in now."""

    def within(self, spec: str | None) -> bool:
        """Tell whether it is in a set, withdrawn or not."""
        return spec is None or bool(_below(self.sets, spec))

    def listed(self, spec: str | None) -> bool:
        """Tell whether a set lists it, as it is or as one that has left."""
        return self.within(spec) or bool(_below(self.left, str(spec)))

    def shown(self, spec: str | None) -> "Item":
        """Return it as a list of a set shows it."""
        if self.within(spec):
            return self
        return replace(self, title=None, deleted=True, sets=_below(self.left, str(spec)))

    def moved(self, now: "Item") -> "Item":
        """Return what it has become, which keeps what it left."""
        there = {above for s in now.sets for above in _lineage(s)}
        left = _specific({s for s in (*self.sets, *self.left) if s not in there})
        return replace(now, left=tuple(sorted(left)))

    def listings(self) -> set[str]:
        """Return all sets that list it."""
        return {above for s in (*self.sets, *self.left) for above in _lineage(s)}


State = Mapping[str, Item]


@dataclass(frozen=True)
class Given:
    """An item as an archive has it: the same number is the same item."""

    number: int
    version: int = 0
    mime: str = MIMES[0]
    collections: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"oai:{NAMESPACE}:{capture(self.number).identity}"

    @property
    def title(self) -> str:
        return f"Title {self.number}.{self.version}."

    @property
    def sets(self) -> tuple[str, ...]:
        domain = f"domain:cz:example:h{self.number % 3}"
        return tuple(sorted((domain, self.mime, *_specific(self.collections))))

    def capture(self) -> Capture:
        digest = DIGESTS[self.number % len(DIGESTS)]
        return capture(self.number, title=self.title, sets=self.sets, content_digest=digest)


NAMES = tuple(Given(number).name for number in range(COUNT))


def digest_of(name: str) -> str:
    return DIGESTS[NAMES.index(name) % len(DIGESTS)]


def url_of(name: str) -> str:
    return capture(NAMES.index(name)).url


def ingested(state: State, runs: Sequence[Mapping[str, Given]]) -> dict[str, Item]:
    """Return what a publish of runs, the earliest first, changes in a state."""
    changed = {}
    for name in {name for run in runs for name in run}:
        found = [run[name] for run in reversed(runs) if name in run]
        sets = found[0].sets if len(found) == 1 else _united(g.sets for g in found)
        old = state.get(name)
        if old is None:
            changed[name] = Item(found[0].title, sets)
        elif not old.withdrawn:
            new = old.moved(Item(found[0].title, _united((sets, old.sets))))
            if new != old:
                changed[name] = new
    return changed


def withdrawn(item: Item) -> Item:
    return replace(item, title=None, deleted=True, withdrawn=True)


def awaited(item: Item) -> Item:
    """Return a tombstone that comes back with the next ingest of its archive."""
    return replace(item, title=None, deleted=True, withdrawn=False)


def _united(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The first one's sets stand; to them come collections, and hierarchies that are not there."""
    first, *others = lists
    have = list(first)
    for more in others:
        roots = {spec.split(":")[0] for spec in have}
        have += [s for s in more if s.startswith("collection:") or s.split(":")[0] not in roots]
    return tuple(sorted(_specific(have)))


def _below(specs: Iterable[str], spec: str) -> tuple[str, ...]:
    return tuple(s for s in specs if (s + ":").startswith(spec + ":"))


def _lineage(spec: str) -> list[str]:
    levels = spec.split(":")
    return [":".join(levels[:n]) for n in range(1, len(levels) + 1)]


def _specific(specs: Iterable[str]) -> set[str]:
    some = set(specs)
    return {s for s in some if not any(o.startswith(s + ":") for o in some)}
