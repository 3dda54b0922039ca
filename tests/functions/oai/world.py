"""Repositories that the model describes and this program answers for, and tokens they give."""

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from functions.oai import format as formats
from functions.oai.format import TEMPLATES
from functions.oai.provider import Provider
from functions.oai.render.render import Renderer
from functions.snapshot import instant, oai_name
from tests.functions.oai import protocol
from tests.functions.oai.client import START, Client, Clock, configured
from tests.functions.oai.protocol import Record, Repository, Rest
from tests.functions.reading.memory import Item, MemoryRepository, capture

KINDS = {
    "capture": frozenset({"oai_dc", "simple"}),
    "fileset": frozenset({"oai_dc", "files"}),
    "other": frozenset(),
}
PREFIXES = ("oai_dc", "simple", "files", "ghost")
_OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
# Each makes Dublin Core, for which schemas are at hand, and says in dc:type which prefix it is of.
_DC = (
    f'<oai_dc:dc xmlns:oai_dc="{_OAI_DC}" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    f'xsi:schemaLocation="{_OAI_DC} http://www.openarchives.org/OAI/2.0/oai_dc.xsd">'
    "<dc:title>{{ title }}</dc:title><dc:type>PREFIX</dc:type></oai_dc:dc>\n"
)
_CROSSWALKS = {
    "capture": {"oai_dc": "my-oai_dc.xml", "simple": "my-simple.xml"},
    "fileset": {"oai_dc": "my-oai_dc.xml", "files": "my-files.xml"},
    "ghost": {"ghost": "my-ghost.xml"},  # a format of a kind of which there is no item
}
_NEVER = "2026-02-27T12:00:00Z"
_FIRST, _MIDNIGHT, _NEW, _LAST = (
    "2026-02-27T23:59:59Z",
    "2026-02-28T00:00:00Z",
    "2026-03-01T00:00:00Z",
    "2026-03-01T10:30:00Z",
)
DATESTAMPS = (_NEVER, _FIRST, _MIDNIGHT, _NEW, _LAST)


def record(
    name: str, datestamp: str, *sets: str, kind: str = "capture", deleted: bool = False
) -> Record:
    """Return the description of an item of that kind; a name without a scheme is a local one."""
    identifier = name if ":" in name else f"oai:example.org:{name}"
    return Record(identifier, datestamp, deleted, frozenset(sets), KINDS[kind])


def described(records: Iterable[Record], earliest: str) -> Repository:
    """Return the description of a repository with those records and whatever follows from them."""
    records = frozenset(records)
    return Repository(
        records,
        frozenset(a for r in records for s in r.sets for a in oai_name.set_lineage(s)),
        frozenset({"oai_dc"}).union(*(r.formats for r in records)),
        earliest,
    )


RICH = described(
    [
        record("01", _NEVER, "mime:text:html", "domain:cz:a:www"),
        record("02", _NEVER, "mime:text:html", "domain:cz:a", "collection:(it's)~*!21"),
        record("a+b", _FIRST, "mime:text:plain", "domain:cz:b"),
        record("%41b", _FIRST, "mime:text:plain", deleted=True),
        record("it's,a;b", _MIDNIGHT, "mime:image:png", "domain:cz:b"),
        record("http://example.org/a?b=c&d=%20#e", _MIDNIGHT, "mime-x"),
        record("03", _NEW, "mime:video:ogg", deleted=True),
        record("04", _NEW, "mime", "domain:sk"),
        record("05", _LAST),
        record("06", _LAST, "mime:text", "domain:cz:a", deleted=True),
        record("f1", _FIRST, "mime:image:png", kind="fileset"),
        record("f2", _NEW, kind="fileset"),
        record("f3", _LAST, "files:old", kind="fileset", deleted=True),
        record("x1", _FIRST, "other:kind", kind="other"),
        record("x2", _LAST, "mime:text", kind="other", deleted=True),
    ],
    _NEVER,
)
BARE = described(
    [
        record("01", _NEVER),
        record("b1", _NEW),
        record("b2", _LAST, deleted=True),
        record("b3", _LAST),
    ],
    _NEVER,
)
EMPTY = described([], _NEVER)


def published(description: Repository) -> MemoryRepository:
    """Return a repository of that description; each item was there from the beginning."""
    repository = MemoryRepository()
    first = {r.identifier: _item(r, "Old <title>") for r in description.records}
    repository.publish(first, instant.from_text(description.earliest))
    for datestamp in sorted({r.datestamp for r in description.records} - {description.earliest}):
        repository.publish(
            {
                r.identifier: None if r.deleted else _item(r, "New & 'better'")
                for r in description.records
                if r.datestamp == datestamp
            },
            instant.from_text(datestamp),
        )
    return repository


def _item(record: Record, title: str) -> Item:
    kind = next(kind for kind, can in KINDS.items() if can == record.formats)
    if kind == "capture":
        return capture("http://example.org/?a=1&b=2", *record.sets, title=title)
    return Item(oai_name.most_specific_sets(record.sets), kind, {"title": title})


@cache
def _templates() -> Path:
    """Return a folder of the shipped templates with the formats of this module in their place."""
    keeper = tempfile.TemporaryDirectory()
    folder = Path(keeper.name) / "templates"
    _templates.keeper = keeper  # type: ignore[attr-defined]
    shutil.copytree(TEMPLATES, folder)
    rows = []
    for prefix in PREFIXES:
        files = {kind: by[prefix] for kind, by in _CROSSWALKS.items() if prefix in by}
        crosswalks = ", ".join(f'{kind} = "{name}"' for kind, name in files.items())
        rows.append(
            f'[[format]]\nprefix = "{prefix}"\nnamespace = "{_OAI_DC}"\n'
            f'schema = "http://www.openarchives.org/OAI/2.0/{prefix}.xsd"\n'
            f"crosswalks = {{ {crosswalks} }}\n"
        )
        (folder / "crosswalks" / f"my-{prefix}.xml").write_text(_DC.replace("PREFIX", prefix))
    (folder / "formats.toml").write_text("\n".join(rows))
    return folder


def client(repository: MemoryRepository, clock: Clock | None = None, size: int = 3) -> Client:
    """Return a client of an application with pages of one size and the formats of this module."""
    settings = {"pages_records": size, "pages_identifiers": size, "pages_sets": size}
    made = Client(repository, clock, **settings)
    application, folder = made.application, _templates()
    application._provider = Provider(
        repository, configured(**settings), formats.load(folder), application._present
    )
    application._renderer = Renderer(folder)
    return made


@dataclass(frozen=True)
class World:
    """A repository's description, who answers for it by pages of `size`, and what it gave."""

    description: Repository
    client: Client
    size: int
    given: Mapping[str, Rest]


def walked(
    description: Repository, asked: Client, verb: str, arguments: Mapping[str, str]
) -> dict[str, Rest]:
    """Harvest a whole list, hold that it is right, and return what its tokens stand for."""
    if verb == "ListSets":
        whole: frozenset = description.sets
    else:
        whole = protocol.listed(arguments, description)
    names = {r.identifier: r for r in description.records}
    seen: list = []
    rests: dict[str, Rest] = {}
    for page in asked.pages(verb, **arguments):
        found = page.text("setSpec") if verb == "ListSets" else page.identifiers
        seen += found if verb == "ListSets" else [names[name] for name in found]
        if page.next:
            left = whole - set(seen)
            rests[page.next] = Rest(verb, left, len(seen), arguments.get("metadataPrefix", ""))
    assert len(seen) == len(whole), (verb, arguments)
    assert set(seen) == whole, (verb, arguments)
    return rests


def lists(description: Repository) -> list[tuple[str, dict[str, str]]]:
    """Return requests for lists that are not empty."""
    found: list[tuple[str, dict[str, str]]] = [("ListSets", {})] if description.sets else []
    for verb in ("ListRecords", "ListIdentifiers"):
        for prefix in sorted(description.formats):
            choices: list[dict[str, str]] = [{}, {"from": "2026-02-28"}, {"until": _NEW}]
            choices += [{"set": spec} for spec in sorted(description.sets) if ":" not in spec]
            found += [(verb, {"metadataPrefix": prefix, **more}) for more in choices]
    return [
        (verb, arguments)
        for verb, arguments in found
        if verb == "ListSets" or protocol.listed(arguments, description)
    ]


def world(description: Repository, size: int = 3) -> World:
    """Return a world, all lists of which were harvested once."""
    asked = client(published(description), Clock(START), size)
    given: dict[str, Rest] = {}
    for verb, arguments in lists(description):
        given |= walked(description, asked, verb, arguments)
    return World(description, asked, size, given)
