"""`publish.site`: all answers as files, whatever was published."""

import gzip
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree, html

from builder.intake.captures import Capture
from builder.outputs.site import chain, item_index
from builder.outputs.site.site_files import SiteFiles
from builder.outputs.site.site_lists import SiteSnapshot
from builder.outputs.site.update import SiteUpdate
from builder.store import durable, folder
from builder.store.folder import FolderStore
from functions.snapshot.layout import SITE as SITE_FOLDER
from functions.snapshot.site_names import digest_name
from tests.bucket import Bucket
from tests.builder.conftest import World, capture
from tests.builder.kinds.records.test_own import add_run, document
from tests.builder.outputs.dumps.history import Operation, apply, identify, operations
from tests.builder.outputs.site.harvest import OAI, Folder, Record, compare, read_records
from tests.e2e.conftest import Home, make_home
from tests.extent import examples, places

SITE = {
    "SHEAF_PUBLISH_SITE": "true",
    "SHEAF_PAGES_RECORDS": "3",
    "SHEAF_PAGES_IDENTIFIERS": "4",
    "SHEAF_PAGES_SETS": "3",
    "SHEAF_FORMATS_OFFERED": '["oai_dc", "mods"]',
    "SHEAF_SITE_PAGES": "0",
}
PLAIN = {
    "SHEAF_PUBLISH_SITE": "true",
    "SHEAF_PAGES_RECORDS": "50",
    "SHEAF_SITE_PAGES": "0",
}
PEOPLE = {**SITE, "SHEAF_SITE_PAGES": "200", "SHEAF_REPOSITORY_BASE_URL": "https://a.cz/x/oai"}
own = st.tuples(
    st.just("own"),
    st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True),
    st.integers(0, 2),
    st.sampled_from("abc"),
)
histories = st.lists(st.one_of(operations, own), min_size=2, max_size=7)


def make_page(number: int, **values: object) -> Capture:
    """Return a capture in one of two sets and those above."""
    return capture(number, sets=("mime:text:html" if number % 3 else "mime:image:png",), **values)


class KilledError(Exception):
    pass


@pytest.fixture(autouse=True, scope="module")
def unsynced() -> Iterator[None]:
    """Sync no disk: a busy one takes most of the time, and other tests show what lasts."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("sync_system", "sync_file", "sync"):
            patch.setattr(folder, name, lambda _: None)
        yield


def change(world: World, operation: Operation) -> None:
    """Apply an operation; own records come in one format, in two, or are deleted."""
    name, numbers, way, title = operation
    if name != "own":
        apply(world, operation, **SITE)
        return
    prefixes = ("oai_dc",) if way == 1 else ("oai_dc", "x")
    rows = {n: None if way == 0 else document(n, title, *prefixes) for n in numbers}
    world.runs += 1
    add_run(Home(world.root.parent), f"own-{world.runs}", rows)
    world.publish(**SITE)


@contextmanager
def new_world(requests: float = 4) -> Iterator[World]:
    """Make a world where sets share pages if that takes so many times the requests."""
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "_MOST_REQUESTS", requests)
        world = World(Path(scratch) / "store")
        try:
            yield world
        finally:
            world.close()


def folder_of(world: World) -> Folder:
    return Folder(world.root / "site")


def export(world: World, root: Path, **values: str) -> SiteFiles:
    """Write or update a folder with the newest snapshot; return what was written."""
    files = SiteFiles(FolderStore(root), "")
    with closing(world.repository()) as repository:
        world.opened.pop()
        snapshot = SiteSnapshot.of(repository, world.newest(), world.configuration(**values))
        SiteUpdate(snapshot, files, world.runtime()).run()
    return files


def contents(folder: Folder) -> dict[str, list[Record]]:
    """Return the records of each list of a folder."""
    return {
        f"{letter} {prefix} {spec}": folder.harvest(letter, prefix, spec)
        for letter in "ri"
        for prefix in folder.router["formats"]
        for spec in ("", *folder.sets())
    }


def read_all(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def check_links(root: Path) -> None:
    """Assert that each page of each list is there, and so is what its token leads to."""
    for path in (*root.glob("oai/*/*/all.json"), *root.glob("oai/*/*/set/*.json")):
        pages = {
            first: (path.parents[1] / "all" if shared else path.with_suffix("")) / f"{first}.xml"
            for _, firsts, *shared in json.loads(path.read_bytes())
            for first in firsts
        }
        for page in pages.values():
            assert gzip.decompress(page.with_name(f"{page.name}.gz").read_bytes())
            token = etree.fromstring(page.read_bytes()).findtext(f".//{OAI}resumptionToken")
            if token and page.parent == path.with_suffix(""):
                first = token.split(",")[2]
                assert pages.get(int(first), page.with_name(f"{first}.xml")).exists()


@given(histories, st.sampled_from((0, 1.3, 4)))
@settings(max_examples=examples(24))
def test_it_is_what_a_whole_export_and_the_server_are(
    history: list[Operation], requests: float
) -> None:
    with new_world(requests) as world:
        for number, operation in enumerate(history):
            change(world, operation)
            world.clock.sleep(60)
            if (world.root / "site").exists() and number % 2:
                compare(world, folder_of(world), SITE)
        if not (world.root / "site").exists():
            return  # nothing was ever published
        compare(world, folder_of(world), SITE)
        export(world, world.root.parent / "fresh", **SITE)
        fresh = Folder(world.root.parent / "fresh")
        assert contents(folder_of(world)) == contents(fresh)
        assert folder_of(world).sets() == fresh.sets()
        assert world.verify().findings == ()


class Harvester:
    """Reads a page at a time; a new harvest begins where the last one did, by its date."""

    def __init__(self, folder: Folder, spec: str) -> None:
        self.folder, self.start, self.token, self.next = folder, "", "", ""
        self.spec = spec
        self.state: dict[str, Record] = {}

    def step(self) -> bool:
        """Read a page; return whether a harvest has ended."""
        if not self.token:
            self.start, self.next = self.next, str(self.folder.router["response_date"])
            self.token = self.folder.begin("r", "oai_dc", self.spec, self.start)
        if self.token:
            records, self.token = self.folder.resume(self.token)
            self.state |= {record[0]: record for record in records}
        return not self.token


@given(histories, st.integers(0, 2), st.sampled_from((0, 1.3, 4)), st.sampled_from(("", "mime")))
@settings(max_examples=examples(24))
def test_a_harvest_in_progress_loses_nothing(
    history: list[Operation], pages: int, requests: float, spec: str
) -> None:
    with new_world(requests) as world:
        change(world, ("ingest", [*range(12)], 0, "a"))
        harvester = Harvester(folder_of(world), spec)
        for operation in history:
            for _ in range(pages):
                harvester.step()
            world.clock.sleep(40_000)  # what is superseded goes after a few publishes
            change(world, operation)
            check_links(world.root / "site")
        while not harvester.step():
            pass
        while not harvester.step():
            pass
        assert harvester.state == {r[0]: r for r in folder_of(world).harvest("r", "oai_dc", spec)}


@pytest.mark.parametrize(
    ("records", "pages", "earlier", "is_shared"),
    [
        (99, 99, 0, True),  # short
        (99, 50, 50, False),  # short each time, and often
        (101, 8, 0, True),  # dense
        (101, 9, 0, False),
        (9000, 360, 500, True),
        (9000, 361, 0, False),
    ],
)
def test_a_set_shares_pages_if_it_is_short_or_dense(
    records: int, pages: int, earlier: int, is_shared: bool
) -> None:
    assert chain.is_shareable(records, pages, earlier, 100) is is_shared


def test_an_item_that_left_a_set_is_deleted_there(world: World) -> None:
    """In the list of all records it is live, so that the set has a page of that publish."""
    world.add([make_page(number) for number in range(1, 12)], **SITE)
    world.clock.sleep(60)
    left = capture(4, sets=("mime:application:pdf",), title="left")
    world.add([left, make_page(5, title="x")], **SITE)
    compare(world, folder_of(world), SITE)
    pages = folder_of(world).chain("r", "oai_dc", "mime:text:html")
    assert [folder.rpartition("/")[2] for _, _, folder in pages][-1] == "mime:text:html"
    assert {folder.rpartition("/")[2] for _, _, folder in pages[:-1]} == {"all"}
    records = folder_of(world).harvest("r", "oai_dc", "mime:text:html")
    assert [r[0] for r in records if r[2]] == [identify(4)]
    export(world, world.root.parent / "fresh", **SITE)
    assert contents(folder_of(world)) == contents(Folder(world.root.parent / "fresh"))


def test_changes_in_one_place_write_at_most_20_files(world: World) -> None:
    world.add([capture(number, sets=()) for number in range(1000)], **PLAIN)
    world.clock.sleep(60)
    listed = [r.fields["url"].rpartition("/")[2] for r in world.listed()[420:445]]
    before = read_all(world.root / "site")
    world.add([capture(int(n), sets=(), title="new") for n in listed], **PLAIN)
    after = read_all(world.root / "site")
    changed = {n for n, data in after.items() if before.get(n) != data and n[-3:] != ".gz"}
    assert len(Folder(world.root / "site").router["formats"]) == 3
    assert len(changed) <= 20
    pages = sum(len(after[name]) for name in changed if "/all/" in name)
    assert pages < 0.15 * sum(len(data) for n, data in after.items() if n[-4:] == ".xml")


def test_what_is_withdrawn_goes_at_once_and_what_is_empty_after_a_day(world: World) -> None:
    world.add([make_page(n, title=f"secret{n}") for n in range(9)], **SITE)
    world.clock.sleep(60)
    root = world.root / "site"
    first = {f"{number}.xml" for number in (1, 4, 7)}
    assert {path.name for path in (root / "oai/oai_dc/r/all").glob("*.xml")} == first
    world.add([make_page(n, title="changed") for n in range(9)], **SITE)
    world.clock.sleep(3600)
    later = {path.name for path in (root / "oai/oai_dc/r/all").glob("*.xml")}
    assert first < later
    world.withdraw(identify(4), **SITE)
    for name, data in read_all(root).items():
        text = gzip.decompress(data) if name.endswith(".gz") else data
        assert b"secret" not in text, name  # all superseded pages went
    world.clock.sleep(60)
    world.add([make_page(n, title="again") for n in range(9)], **SITE)
    superseded = later - first
    names = {path.name for path in (root / "oai/oai_dc/r/all").glob("*.xml")}
    assert superseded & names
    world.clock.sleep(timedelta(days=1, seconds=1).total_seconds())
    world.publish(**SITE)
    names = {path.name for path in (root / "oai/oai_dc/r/all").glob("*.xml")}
    assert not superseded & names
    compare(world, folder_of(world), SITE)


def kill_at(patch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Let the writing of a file raise, after so many; return the names so far."""
    names: list[str] = []
    whole = SiteFiles._count

    def count(files: SiteFiles, name: str, content: bytes) -> str:
        if len(names) == number:
            raise KilledError
        names.append(name)
        return whole(files, name, content)

    patch.setattr(SiteFiles, "_count", count)
    patch.setattr(durable, "_BATCH_OBJECTS", 2)
    return names


def count_files(world: World, patch: pytest.MonkeyPatch, root: Path, **values: str) -> int:
    with patch.context() as within:
        names = kill_at(within, -1)
        export(world, root, **values)
    return len(names)


def test_an_interrupted_update_is_completed(tmp_path: Path, world: World) -> None:
    patch = pytest.MonkeyPatch()
    world.add([make_page(number) for number in range(12)], **SITE)
    world.clock.sleep(60)
    count = 400
    for number in places(count, 40):
        titles = f"t{number}"
        chosen = [make_page(n % 15, title=titles) for n in range(number % 7, number % 7 + 5)]
        with patch.context() as within:
            kill_at(within, number)
            try:
                world.add(chosen, **SITE)
            except KilledError:
                check_links(world.root / "site")
        world.clock.sleep(60)
        if number % 80:
            world.withdraw(identify(number % 12), **SITE)
        else:
            world.publish(**SITE)
        check_links(world.root / "site")
        compare(world, folder_of(world), SITE)
        assert world.verify().findings == ()


def test_an_interrupted_export_goes_on(tmp_path: Path, world: World) -> None:
    world.add([make_page(number) for number in range(40)], **SITE)
    patch, root = pytest.MonkeyPatch(), tmp_path / "site"
    total = count_files(world, patch, tmp_path / "other", **SITE)
    with patch.context() as within:
        kill_at(within, total // 2)
        with pytest.raises(KilledError):
            export(world, root, **SITE)
    files = export(world, root, **SITE)
    assert files.count < total * 0.6
    expected = read_all(tmp_path / "other")
    assert read_all(root) == expected
    assert export(world, root, **SITE).count == 0


def test_verify_names_what_is_missing_or_differs(world: World) -> None:
    world.add([make_page(number) for number in range(9)], **SITE)
    store, pages = world.store, "site/oai/oai_dc/r/all/"
    store.remove(f"{pages}4.xml")
    store.replace(f"{pages}7.xml.gz", b"x", store.tag(f"{pages}7.xml.gz"))
    store.replace("site/index/recent.json", b"{", store.tag("site/index/recent.json"))
    store.create("site/oai/stray.xml", b"x")
    assert {(finding.code, finding.object) for finding in world.verify().findings} == {
        ("site-missing", f"{pages}4.xml"),
        ("site-altered", f"{pages}7.xml.gz"),
        ("site-altered", "site/index/recent.json"),
        ("orphan", "site/oai/stray.xml"),
    }
    store.remove("site/router.json")
    assert "site-missing" in {finding.code for finding in world.verify().findings}
    world.publish()
    assert not [*store.keys("site/")]
    assert world.verify().findings == ()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "values",
    [
        {"SHEAF_REPOSITORY_BASE_URL": "https://other.example.org/oai"},
        {"SHEAF_PAGES_RECORDS": "2"},
        {"SHEAF_FORMATS_OFFERED": '["oai_dc", "capture"]'},
        {"SHEAF_REPOSITORY_NAME": "Another"},
        {"SHEAF_SETS_NAMES": '{"a:b" = "A set"}'},
        {"SHEAF_REPOSITORY_ADMIN_EMAILS": '["new@a.cz"]'},
    ],
    ids=str,
)
def test_other_settings_change_what_depends_on_them(world: World, values: dict[str, str]) -> None:
    world.add([make_page(number) for number in range(9)], **SITE)
    world.clock.sleep(60)
    before = read_all(world.root / "site")
    world.publish(**{**SITE, **values})
    changed = {n for n, data in read_all(world.root / "site").items() if before.get(n) != data}
    assert changed
    if "EMAILS" in str(values):
        names = ("identify.xml", "www/static-repository.xml")
        assert {*changed} == {"state.json", *names, *(f"{name}.gz" for name in names)}
    world.clock.sleep(60)
    world.add([make_page(3, title="x")], **{**SITE, **values})
    compare(world, folder_of(world), {**SITE, **values})
    assert world.verify().findings == ()


def test_an_index_grows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in (("_FULL", 1), ("_OVERFULL", 2), ("_RECENT", 4)):
        monkeypatch.setattr(item_index, name, number)
    for last in (8, 12, 40, 44):
        world.add([capture(number, sets=()) for number in range(last)], **SITE)
        world.clock.sleep(60)
        compare(world, folder_of(world), SITE)
    assert folder_of(world).router["digits"] == 2
    assert world.verify().findings == ()


def test_the_command_writes_a_folder_and_updates_it(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    add_run(home, "1", {number: document(number, "Bees", "oai_dc") for number in range(3)})
    assert home("publish").code == 0
    done = home("export", "site", tmp_path / "public", "--json")
    assert done.code == 0, done.err
    assert done.json["files"] == len(read_all(tmp_path / "public"))
    assert home("export", "site", tmp_path / "public", "--json").json["files"] == 0
    add_run(home, "2", {1: document(1, "Wasps", "oai_dc")})
    assert home("publish").code == 0
    again = home("export", "site", tmp_path / "public", "--json").json
    assert 0 < again["files"] < done.json["files"]
    refused = home("export", "site", home.folder / "store/site")
    assert refused.code == 2


def test_documents_are_those_of_the_server(world: World) -> None:
    world.add([make_page(number) for number in range(3)], **SITE)
    root = world.root / "site"
    router: dict[str, Any] = json.loads((root / "router.json").read_bytes())
    identify_ = etree.fromstring((root / "identify.xml").read_bytes())
    assert identify_.findtext(f".//{OAI}earliestDatestamp") == router["earliest"]
    assert (root / "formats/capture.xml").exists()
    assert (root / "www/schema/set.xsd").exists()
    assert router["has_sets"]
    first = (root / "oai/oai_dc/r/all/1.xml").read_text()
    assert f"<responseDate>{router['response_date']}</responseDate>" in first
    assert "completeListSize" not in first


def list_targets(root: Path) -> set[str]:
    """Return where the links of all pages lead on their own host, without what needs a server."""
    targets = set()
    for path in root.rglob("*.html"):
        page = html.fromstring(path.read_bytes())
        for element in page.iter("a", "link", "script", "img", "form"):
            for name in ("href", "src", "action"):
                if (link := element.get(name, "")).startswith("/"):
                    targets.add(link.partition("#")[0])
    return targets


def test_pages_for_people_lead_to_files(world: World) -> None:
    world.add([make_page(number) for number in range(30)], ("collection:a",), **PEOPLE)
    root = world.root / "site/www"
    for target in list_targets(root):
        assert target.startswith("/x/"), target
        name = unquote(target.removeprefix("/x/")) or "index"
        is_file = any((root / (name + end)).is_file() for end in ("", ".html"))
        assert is_file or "/oai?" in target, target
    sitemap = etree.fromstring((root / "sitemap.xml").read_bytes())
    (part,) = (e.text or "" for e in sitemap.iter("{*}loc"))
    listed = etree.fromstring((root / part.removeprefix("https://a.cz/x/")).read_bytes())
    assert all((e.text or "").startswith("https://a.cz/x/record/") for e in listed.iter("{*}loc"))
    assert "https://a.cz/x/sitemap.xml" in (root / "robots.txt").read_text()
    secret = root / f"record/{identify(4)}.html"
    assert "Page 4" in secret.read_text()
    before = read_all(root)
    world.clock.sleep(60)
    world.withdraw(identify(4), **PEOPLE)
    assert "Page 4" not in secret.read_text()
    assert not [n for n, data in read_all(root).items() if b"Page 4<" in data]
    same = [n for n, data in read_all(root).items() if before.get(n) == data]
    assert sum(name.startswith("record/") for name in same) >= 50  # with gzip
    world.publish(**{**PEOPLE, "SHEAF_SITE_PAGES": "20"})
    world.clock.sleep(90_000)
    world.publish(**{**PEOPLE, "SHEAF_SITE_PAGES": "20"})
    assert not (root / "record").exists()
    assert (root / "index.html").exists()
    assert world.verify().findings == ()


def test_a_bucket_has_the_same_with_media_types(
    world: World, make_bucket: Callable[..., Bucket]
) -> None:
    bucket = make_bucket()
    for title in ("a", "b"):
        world.add([make_page(number, title=title) for number in range(9)], **PEOPLE)
        with closing(world.repository()) as repository:
            world.opened.pop()
            snapshot = SiteSnapshot.of(repository, world.newest(), world.configuration(**PEOPLE))
            SiteUpdate(snapshot, SiteFiles(bucket, SITE_FOLDER), world.runtime()).run()
        world.clock.sleep(60)
    expected = {f"{SITE_FOLDER}{n}": data for n, data in read_all(world.root / "site").items()}
    assert {key: bucket.read(key) for key in bucket.keys(SITE_FOLDER)} == expected

    def describe(name: str) -> tuple[str, str | None]:
        answer = bucket._client.small.head_object(**bucket._client.names(bucket._name(name)))
        return answer["ContentType"], answer.get("ContentEncoding")

    assert describe("site/identify.xml") == ("text/xml; charset=utf-8", None)
    assert describe("site/identify.xml.gz") == ("text/xml; charset=utf-8", "gzip")
    assert describe("site/www/sets.html") == ("text/html; charset=utf-8", None)
    assert describe("site/router.json")[0] == "application/json"


def test_records_have_files_of_their_own(tmp_path: Path) -> None:
    with new_world() as world:
        values = {**SITE, "SHEAF_SITE_RECORDS": "files"}

        def check() -> None:
            folder = folder_of(world)
            names = set()
            for prefix in folder.router["formats"]:
                for record in folder.harvest("r", prefix):
                    digest = digest_name(record[0])
                    names.add(f"{prefix}/{digest}.xml")
                    data = (folder.root / f"get/{prefix}/{digest}.xml").read_bytes()
                    assert read_records(etree.fromstring(data)) == [record]
            there = (folder.root / "get").rglob("*.xml")
            assert {path.relative_to(folder.root / "get").as_posix() for path in there} == names
            assert world.verify().findings == ()

        for way in (2, 1):
            world.ingest([make_page(number, title=str(way)) for number in range(4)])
            prefixes = ("oai_dc", "x")[:way]
            rows = {n: document(n, str(way), *prefixes) for n in range(3)}
            add_run(Home(world.root.parent), f"own-{way}", rows)
            world.publish(**values)
            world.clock.sleep(90_000)
            world.withdraw(identify(way), **values)  # what is superseded goes
            check()
        add_run(Home(world.root.parent), "own-3", {0: document(0, "y", "oai_dc", "x")})
        world.publish(**values)
        add_run(Home(world.root.parent), "own-4", {0: document(0, "y", "oai_dc")})
        values["SHEAF_REPOSITORY_NAME"] = "Another"  # all is written anew
        world.publish(**values)
        check()
        for offered in ('["oai_dc"]', '["oai_dc", "mods"]'):
            values["SHEAF_FORMATS_OFFERED"] = offered
            world.publish(**values)
            world.clock.sleep(90_000)
            world.publish(**values)
            check()
        assert [*(world.root / "site/get").rglob("*.gz")]
        world.publish(**{**values, "SHEAF_SITE_GZIP": "false"})
        assert not [*(world.root / "site/get").rglob("*.gz")]
        world.publish(**SITE)
        world.clock.sleep(90_000)
        world.publish(**SITE)
        assert not (world.root / "site/get").exists()
