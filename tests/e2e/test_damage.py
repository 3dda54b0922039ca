"""Damage in a store is refused: every answer is the right one, or says that there is none."""

import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from builder.commands.demo import samples
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.content import assembly
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from functions.site.assembly import site_over
from functions.snapshot import layout
from functions.store.catalog import Catalogue
from tests.clock import CLOCK
from tests.e2e.conftest import Home, make_home, warc
from tests.extent import ALL
from tests.functions.oai.client import call_of, event

FLIPS = range(200) if ALL else (8, 25, 66)
SWAPS = 40 if ALL else 2
TOKEN = re.compile(r"<resumptionToken[^>]*>([^<]+)</resumptionToken>")
IDENTIFIER = re.compile(r"<identifier>(oai:[^<]+)</identifier>")
SETTINGS = {"SHEAF_PAGES_RECORDS": "20", "SHEAF_CONTENT_SERVE": "true"}
NOW = CLOCK.now() + timedelta(hours=1)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Give a store whose tables have files of several small row groups, and superseded rows."""
    folder = tmp_path_factory.mktemp("damage")
    made = make_home(folder / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "GROUP_ROWS", 8)
        for turn, title in enumerate(("first", "second")):
            hosts = range(40) if not turn else range(5 * turn, 5 * turn + 8)
            pages = {
                f"http://h{n % 7}.cz/{n}": f"<title>{title} {n}</title>".encode() for n in hosts
            }
            archive = warc(folder / f"{turn}.warc.gz", pages, f"200{turn}-11-05T12:00:00Z")
            assert made("ingest", archive, "--collection", "serials").code == 0
            if not turn:
                samples.write_papers(folder / "RePEc", "http://papers.example.org")
                assert made("ingest", folder / "RePEc").code == 0
            assert made("publish").code == 0
            made("withdraw", "--reason", "x", "--url-prefix", f"http://h{turn}.cz/")
    return made


Answers = dict[str, tuple[int, Any]]
"""Status and body of the answer to each path."""


@contextmanager
def serve(home: Home, root: Path) -> Iterator[Callable[[str], tuple[int, Any]]]:
    """Give a server that has just begun, as a function of a path."""
    values = configuration.parse(home.config.read_text(), SETTINGS).relative_to(home.folder)
    repository = DuckRepository(FolderStore(root))
    pages = Application(repository, values, lambda: NOW, pages=site_over(repository))
    content = assembly.application(repository, str(root), home.folder, values, {}, lambda: NOW)
    handler = assembly.beside(content, pages.answer)

    def ask(path: str) -> tuple[int, object]:
        parts = urlsplit(path)
        response = handler(call_of(event(parts.query, path=parts.path)))
        return response.status, response.body

    try:
        yield ask
    finally:
        repository.close()


@pytest.fixture(scope="module")
def right(home: Home) -> Answers:
    """Return the answers of the undamaged store, of every verb, format and look-up."""
    of = "/oai?verb=ListRecords&metadataPrefix="
    lists = [of + name for name in ("oai_dc", "mods", "mets", "redif", "amf")]
    lists += [f"{of}oai_dc&set={spec}" for spec in ("serials", "domain:cz:h3", "RePEc")]
    lists.append("/oai?verb=ListIdentifiers&metadataPrefix=oai_dc&set=mime:text:html")
    with serve(home, home.folder / "store") as ask:
        answers, names = {}, {}
        while lists:
            path = lists.pop()
            answers[path] = ask(path)
            body = bytes(answers[path][1]).decode()
            verb = path[:24].partition("&")[0]
            lists += [f"{verb}&resumptionToken={quote(t)}" for t in TOKEN.findall(body)]
            names.update(dict.fromkeys(IDENTIFIER.findall(body)))
        paths = [path for name in list(names)[:: 9 if ALL else 20] for path in ask_of(quote(name))]
        for n in range(3, 40, 9):
            url = f"http://h{n % 7}.cz/{n}"
            paths += [f"/cdx?url={url}", f"/captures?url={url}&match=exact"]
        paths += [
            *("/", "/sets", "/sets?under=domain:cz", "/publishes", "/collections", "/records"),
            *("/cdx?url=h1.cz&matchType=domain", "/captures?url=h1.cz&match=domain"),
            *("/search?q=first", "/search?q=sec*", "/oai?verb=Identify", "/oai?verb=ListSets"),
        ]
        answers.update((path, ask(path)) for path in paths)
    assert {status for status, _ in answers.values()} <= {200, 410}
    return answers


def ask_of(name: str) -> list[str]:
    """Return the requests for one item."""
    return [
        f"/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier={name}",
        f"/oai?verb=ListMetadataFormats&identifier={name}",
        f"/record?id={name}",
        f"/content/{name}",
    ]


def compare(root: Path, home: Home, right: Answers, what: str) -> int:
    """Return how many answers are refusals; fail if any other differs from the right one."""
    refused = 0
    with serve(home, root) as ask:
        for path, expected in right.items():
            answer = ask(path)
            if answer[0] == 503:
                refused += 1
            else:
                assert answer == expected, (what, path)
    return refused


def list_files(root: Path) -> list[Path]:
    """Return the data files of the newest snapshot that requests read."""
    catalogue = Catalogue(FolderStore(root))
    newest = catalogue.pointer().newest()
    assert newest is not None
    manifest = catalogue.manifest(newest.snapshot)
    tables = (*layout.SERVED, "hosts", "domains")
    return [root / file.key for table in tables for file in catalogue.files(manifest, table)]


@pytest.mark.parametrize("number", FLIPS)
def test_a_flipped_bit_is_refused(home: Home, right: Answers, tmp_path: Path, number: int) -> None:
    """In a data file, or in every eighth case in a document that says what these are."""
    root = Path(shutil.copytree(home.folder / "store", tmp_path / "store"))
    files = list_files(root)
    if number % 8 == 0:
        files = [root / layout.POINTER, *root.glob("snapshots/*/manifest.json")]
    draw = random.Random(number)
    path = draw.choice(sorted(files))
    data = bytearray(path.read_bytes())
    place = draw.randrange(len(data))
    data[place] ^= 1 << draw.randrange(8)
    path.write_bytes(data)
    compare(root, home, right, f"{path.relative_to(root)}, byte {place}")


def test_a_data_file_in_place_of_another_is_refused(
    home: Home, right: Answers, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(home.folder / "store", tmp_path / "store"))
    files = list_files(root)
    pairs = [(a, b) for a in files for b in files if a.parent == b.parent and a != b]
    for path, other in random.Random(0).sample(pairs, min(SWAPS, len(pairs))):
        data = path.read_bytes()
        path.write_bytes(other.read_bytes())
        what = f"{other.relative_to(root)} in place of {path.relative_to(root)}"
        assert compare(root, home, right, what) > 0, what
        path.write_bytes(data)


def test_commands_name_what_is_damaged(home: Home, tmp_path: Path) -> None:
    root = Path(shutil.copytree(home.folder / "store", tmp_path / "store"))
    path = next(path for path in list_files(root) if path.parent.name == "records")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    for command in (
        ("query", "SELECT url FROM captures"),
        ("export", "cdxj", tmp_path / "a.cdxj"),
        ("export", "jsonl", tmp_path / "a.jsonl"),
    ):
        result = home(*command, "--store", root)
        assert (result.code, result.err.count("\n")) == (2, 1), (command, result)
        assert f"{path.relative_to(root)} is damaged" in result.err
