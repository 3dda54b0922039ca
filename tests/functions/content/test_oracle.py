"""Published indexes of real archives, held against /cdx: each line of what is published agrees.

What the indexes say otherwise, and why, is told where the reader itself is held against them.
"""

import ast
import csv
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from builder.sources.events import Capture
from builder.sources.rules import DocumentRules
from builder.sources.webarchive import read_archive
from functions.content import cdx
from functions.content.search import CaptureSearch
from functions.http.http_message import Call
from functions.snapshot.manifest import Manifest
from functions.url import authority
from tests.builder.conftest import World
from tests.builder.sources.test_oracles import IA_EXCEPTIONS

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "webarchive"
ORACLE = DATA / "oracle"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real archives at {DATA}")

_ALL = DocumentRules(redirects=True, errors=True)
IA_PREFIX = "ia-cdxwriter__"
FILES = {
    "core": (
        "pywb__dupes.warc.gz",
        "pywb__iana.warc.gz",
        "ipwb__IAH-20080430204825-00000-blackbook.warc.gz",
        "nas__fyensdk.arc",
    ),
    "hard": tuple(sorted(p.name for p in (DATA / "hard").glob(f"{IA_PREFIX}*"))),
}
# Of a long index one line in so many is asked for by its own URL, the others by their hosts: how a
# search finds one URL is the same for all, and the key that it is found by is compared for each.
_STEP = 6
# Times that the Internet Archive's index fills up otherwise than the stamps here.
_MADE_UP = {("10_digit_date.arc.gz", 666): "20160209000000"}


@dataclass
class Index:
    """A store of the files that the indexes are of, and /cdx over it."""

    world: World
    manifest: Manifest
    search: CaptureSearch
    asked: dict[tuple[str, str], list[dict[str, str]]] = field(default_factory=dict)

    def lines(self, url: str, match: str = "exact") -> list[dict[str, str]]:
        """Return all lines; what many lines of an index ask is asked once."""
        if (url, match) not in self.asked:
            self.asked[url, match] = self.answered(url, match)
        return self.asked[url, match]

    def answered(self, url: str, match: str) -> list[dict[str, str]]:
        query = urlencode({"url": url, "matchType": match, "output": "json"})
        call = Call("GET", "http://localhost", "/cdx", query)
        reply = cdx.reply(call, self.search, self.manifest, self.world.configuration())
        assert reply.status == 200, reply.body
        assert "Link" not in reply.headers
        return [json.loads(line) for line in reply.body.splitlines()]

    def line(self, url: str, filename: str, offset: int, match: str = "exact") -> dict[str, str]:
        """Return the one line of a URL, or of its host, that is of a record at a place."""
        asked = url if match == "exact" else urlsplit(url).netloc
        (found,) = (
            line
            for line in self.lines(asked, match)
            if (line["filename"], line["offset"]) == (filename, str(offset))
        )
        return found


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    world = World(tmp_path_factory.mktemp("oracle") / "store")
    captures: list[Capture] = []
    for folder, names in FILES.items():
        for name in names:
            with (DATA / folder / name).open("rb") as file:
                captures += [e for e in read_archive(file, name, _ALL) if isinstance(e, Capture)]
    world.ingest(captures)
    manifest = world.publish().manifest
    assert manifest is not None
    repository = world.repository()
    yield Index(world, manifest, CaptureSearch(repository.catalogue, repository.files))
    world.close()


def test_every_line_of_the_internet_archives_index(index: Index) -> None:
    exceptions = {place: value for place, value in IA_EXCEPTIONS.items() if place[2] != "date"}
    count: Counter[bool] = Counter()
    with (ORACLE / "ia_cdxwriter_expected.csv").open(newline="") as rows:
        for line in csv.DictReader(rows):
            name, offset = line["file"], int(line["offset"])
            raw = ast.literal_eval(line["url_bytes_repr"])
            url = authority.text(raw)
            kind = line["mime"].partition("/")[2] if line["mime"].startswith("warc") else ""
            is_capture = kind in ("", "revisit") and line["mime"] != "warc-info"
            count[is_capture] += 1
            if not is_capture:
                # Requests, metadata and what tells of the file are no documents.
                places = {(one["filename"], one["offset"]) for one in index.lines(url)}
                assert (IA_PREFIX + name, str(offset)) not in places
                continue
            found = index.line(url, IA_PREFIX + name, offset)
            theirs = {
                "urlkey": line["massaged_url"],
                "timestamp": _MADE_UP.get((name, offset), line["timestamp"]),
                "mime": line["mime"],
                "status": line["status"],
                "digest": line["payload_sha1_b32"],
                "length": line["compressed_size"],
            }
            for field, value in theirs.items():
                wanted = exceptions.pop((name, offset, field), value)
                assert found.get(field, "-") == wanted, (line, field)
    assert not exceptions
    assert count == {True: 17, False: 16}


@pytest.mark.parametrize(("name", "count"), [("pywb__dupes", 12), ("pywb__iana", 171)])
def test_every_line_of_pywbs_index(index: Index, name: str, count: int) -> None:
    lines = (ORACLE / f"{name}.cdxj").read_text().splitlines()
    assert len(lines) == count
    for line in lines:
        key, time, text = line.split(" ", 2)
        said = json.loads(text)
        found = {**index.line(said["url"], f"{name}.warc.gz", said["offset"])}
        assert (found["urlkey"], found["timestamp"]) == (key, time)
        assert said.pop("filename") == found.pop("filename").partition("__")[2]
        # Of a revisit it tells no status, and of none where it led.
        assert said.items() <= found.items()
        assert found.keys() - said.keys() <= {
            "urlkey",
            "timestamp",
            "identifier",
            "redirect",
            "status",
        }


def _match(number: int) -> str:
    return "host" if number % _STEP else "exact"


@pytest.mark.thorough
def test_every_line_of_solrwaybacks_index(index: Index) -> None:
    name = "ipwb__IAH-20080430204825-00000-blackbook.warc.gz"
    lines = (ORACLE / f"solrwayback__{name.partition('__')[2]}.cdx").read_text().splitlines()
    count: Counter[bool] = Counter()
    for number, line in enumerate(lines[1:]):
        key, time, url, mime, status, digest, _, _, length, offset, _ = line.split()
        is_capture = status != "-"
        count[is_capture] += 1
        if is_capture:
            found = index.line(url, name, int(offset), _match(number))
            ours = [found.get(f) for f in ("urlkey", "timestamp", "url", "mime", "status")]
            assert ours == [key, time, url, mime, status]
            assert (found["digest"], found["length"]) == (digest, length)
    assert count == {True: 261, False: 561}


def test_every_line_of_netarkivets_index(index: Index) -> None:
    lines = (ORACLE / "nas__fyensdk.cdx").read_text().splitlines()
    for number, line in enumerate(lines):
        url, _, date, mime, _, _, offset, _ = line.split(" ")
        found = index.line(url, "nas__fyensdk.arc", int(offset), _match(number))
        assert (found["url"], found["timestamp"], found["mime"]) == (url, date, mime)
    assert len(lines) == 189


def test_all_that_is_published_is_found_and_in_order(index: Index) -> None:
    """By the key of every capture, and in the order of indexes: that of their bytes."""
    found = index.search.captures(index.manifest, "", "\x7f", None, 100_000)
    assert len(found) == index.manifest.kinds()["capture"]
    keys = [(c.surt, c.stamp) for c in found]
    assert keys == sorted(keys)
    lines: Sequence[dict[str, str]] = index.lines("iana.org", "domain")
    assert len(lines) >= 171
    written = [f"{line['urlkey']} {line['timestamp']}" for line in lines]
    assert written == sorted(written)
