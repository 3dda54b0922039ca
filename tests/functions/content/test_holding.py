"""What the store itself has: files of datasets as each strategy keeps them, objects of interest."""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.commands.demo import samples
from builder.obi.content import FILE, Incidence, Row, Version
from builder.obi.run import Purpose, claim
from builder.publish.selection import Selection
from builder.publish.withdraw import withdraw
from functions.config import configuration
from functions.content import assembly, stored
from functions.content.contents import ArchivedContents
from functions.content.protocols import ContentError
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import PublishedRecord
from functions.snapshot.manifest import Manifest
from tests.builder.beginning import begin
from tests.builder.conftest import World
from tests.builder.obi.archive import PREFIX, Repec
from tests.builder.obi.logs import put
from tests.builder.sources.datasets.kept import body, keep
from tests.builder.sources.datasets.outcomes import item
from tests.builder.sources.datasets.platform import STRATEGIES, fetch, platform
from tests.builder.sources.datasets.published import publish, rows
from tests.builder.sources.redif.trees import paper
from tests.builder.sources.webarchives.containers import archived

pytestmark = pytest.mark.shared(2)

NAME = "oai:archive.example.org:dataset,invenio,data.example,41"
URL, WRITTEN = "http://a.org/one.pdf", "HTTP://A.org/one.pdf"
WITHDRAWN, LEFT, SHARED = (f"http://a.org/{name}.pdf" for name in ("withdrawn", "left", "shared"))


def repository_of(world: World) -> DuckRepository:
    """Return the one repository of a test: it reads the pointer anew all the same."""
    return world.opened[-1] if world.opened else world.repository()


def contents_of(world: World) -> ArchivedContents:
    settings = world.configuration()
    return assembly.open_contents(
        repository_of(world), str(world.root), world.root.parent, settings, {}
    )


def manifest_of(world: World) -> Manifest:
    repository = repository_of(world)
    newest = repository.pointer().newest()
    assert newest is not None
    return repository.manifest(newest.snapshot)


def record_of(world: World, identifier: str) -> PublishedRecord | None:
    return repository_of(world).record(manifest_of(world), identifier)


def read(world: World, identifier: str | None, **asked: Any) -> bytes:
    """Return the bytes of an item, which are where their content says, if it says so."""
    contents = contents_of(world)
    record = record_of(world, identifier) if identifier else None
    found = contents.find(manifest_of(world), record, **asked)
    with contents.open_content(found) as stream:
        data = stream.read()
    with contents.open_content(found, coded=True, verified=False) as stream:
        assert stream.read() == data
    assert found.size == len(data)
    assert found.digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
    if found.stretch is not None:
        whole = Path(found.stretch.address).read_bytes()[found.stretch.offset :]
        assert whole[: found.stretch.length] == data
    return data


def code(world: World, item: str | PublishedRecord | None, **asked: Any) -> str:
    """Return why the bytes of an item, by its identifier or as it is, are not given."""
    record = record_of(world, item) if isinstance(item, str) else item
    contents = contents_of(world)
    with (
        pytest.raises(ContentError) as error,
        contents.open_content(contents.find(manifest_of(world), record, **asked)) as stream,
    ):
        stream.read()
    return error.value.code


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    world.clock.now = datetime(2026, 11, 22, 10, tzinfo=UTC)
    yield world
    world.close()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_files_of_datasets_come_out_of_what_each_strategy_made(
    world: World, tmp_path: Path, strategy: str
) -> None:
    text = f"http.host_seconds = 0\nfileset.strategy = {STRATEGIES[strategy]}\n"
    with platform() as base:
        settings = configuration.parse(text, {})
        found = fetch(world.store, settings, world.clock, tmp_path / "own", base)
        publish(world, found)
        ((name,),) = rows(world, "SELECT identifier FROM records")
    files = samples.FILES / "web" / "api" / "records" / "hives-2024" / "files"
    bodies = {path.parent.name: path.read_bytes() for path in files.rglob("content")}
    record = record_of(world, name)
    assert record is not None
    for path, data in bodies.items():
        assert read(world, name, file=path) == data
        (one,) = (f for f in record.fields["files"] if f["path"] == path)
        assert read(world, name, file=one["platform_url"]) == data
    assert code(world, name, file="nothing") == "unknown"
    if strategy == "s3-fileset-bundled":
        bundle = zipfile.ZipFile(io.BytesIO(read(world, name)))
        assert {one: bundle.read(one) for one in bundle.namelist()} == bodies
    else:
        assert code(world, name) == "unknown"


def one_file(world: World) -> None:
    publish(world, keep(world.store, item("a.csv")))


def test_the_one_file_of_a_dataset_needs_no_name(world: World) -> None:
    begin(world, "one file of a dataset", one_file)
    assert read(world, NAME) == read(world, NAME, file="a.csv") == body("a.csv", 5)


def test_a_deflated_member_is_inflated(world: World) -> None:
    """As of a platform's own bundle."""
    begin(world, "one file of a dataset", one_file)
    data = b"rok,kg\n" * 50_000
    made = archived(("a.csv", data), method=zipfile.ZIP_DEFLATED)
    record = record_of(world, NAME)
    assert record is not None
    (one,) = record.fields["files"]
    (world.root / one["key"]).write_bytes(made + b"behind it")
    told = zipfile.ZipFile(io.BytesIO(made)).getinfo("a.csv").compress_size
    packed = {**one, "place": 30 + len("a.csv"), "compression": "deflated", "bytes": len(data)}
    packed["sha256"] = hashlib.sha256(data).hexdigest()
    led = replace(record, fields={**record.fields, "files": [packed]})
    contents = contents_of(world)
    found = contents.find(manifest_of(world), led)
    with contents.open_content(found) as stream:
        assert stream.read() == data
    assert (found.size, found.stretch) == (len(data), None)
    assert stored.hold_file(led, {**packed, "packed": told}).length == told  # one range, no more
    alone = replace(led, fields={**led.fields, "files": [{**packed, "packed": told}]})
    with contents.open_content(contents.find(manifest_of(world), alone)) as stream:
        assert stream.read() == data
    broken = replace(led, fields={**led.fields, "files": [{**packed, "place": 60}]})
    assert code(world, broken) == "damaged"


def test_files_at_archive_org_are_elsewhere_and_what_is_not_kept_is_none(world: World) -> None:
    publish(world, keep(world.store, item("a.csv", "b.csv")))
    record = record_of(world, NAME)
    assert record is not None
    files = [{**one, "key": None} for one in record.fields["files"]]
    there = replace(record, fields={**record.fields, "files": files, "archiveorg_item": "x"})
    none = replace(record, fields={**record.fields, "files": []})
    assert code(world, there, file="a.csv") == "elsewhere"
    assert code(world, none, file="a.csv") == "no-content"


def test_an_object_that_is_gone_or_altered_is_told(world: World) -> None:
    begin(world, "one file of a dataset", one_file)
    found = contents_of(world).find(manifest_of(world), record_of(world, NAME))
    assert found.stretch is not None
    path = Path(found.stretch.address)
    path.write_bytes(b"aaaaz")
    assert code(world, NAME) == "damaged"
    path.unlink()
    assert code(world, NAME) == "not-at-hand"


def test_nothing_of_a_withdrawn_dataset_is_given(world: World) -> None:
    begin(world, "one file of a dataset", one_file)
    withdraw(
        world.store, world.configuration(), world.runtime(), Selection(identifiers=(NAME,)), "x"
    )
    assert code(world, NAME) == code(world, NAME, file="a.csv") == "withdrawn"


def gather(repec: Repec, data: bytes, url: str = URL) -> datetime:
    """Have a run find that file behind a URL, which the template names."""
    repec.clock.sleep(100)
    run = claim(repec.store, Purpose("gather", "web", str(repec.clock.now)), repec.run_outside)
    run.turn()
    where = put(run, url, data)
    rows: list[Row] = [
        Version(
            id=url,
            kind=FILE,
            key=where,
            bytes=len(data),
            md5=hashlib.md5(data).hexdigest(),
            sha256=hashlib.sha256(data).hexdigest(),
            media_type="application/pdf",
        ),
        Incidence(id=url, kind=FILE, what="appearance", key=where),
    ]
    return datetime.fromtimestamp(run.commit(rows).tist, UTC)


def named(number: int = 1, title: str = "On Rugs", url: str = WRITTEN) -> bytes:
    """Return a paper's template that names the file."""
    return paper(number, title) + f"\nFile-URL: {url}\nFile-URL: http://a.org/never\n".encode()


def handle(number: int) -> str:
    return f"RePEc:aaa:wpaper:{number}"


@dataclass
class Library:
    """A store of templates and their files, and the times at which some were as they were."""

    world: Repec
    rugs: datetime
    one: datetime


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """Paper 1 is on rugs, and its file came twice; paper 2 was on rugs. 3 and 5 are withdrawn.

    Nobody else names the file of 3, and 6 that of 5, too. 4 named a file once.
    """
    world = Repec(tmp_path_factory.mktemp("repec") / "store")
    world.take(
        a=named(),
        b=named(2),
        c=named(3, url=WITHDRAWN),
        d=named(4, url=LEFT),
        e=named(5, url=SHARED),
        f=named(6, url=SHARED),
    )
    rugs = world.clock.now
    one = gather(world, b"%PDF one")
    gather(world, b"%PDF two")
    for url in (WITHDRAWN, LEFT, SHARED):
        gather(world, b"%PDF " + url.encode(), url)
    world.clock.sleep(1000)
    world.publish_tree(b=named(2, title="On Carpets"), d=paper(4))
    chosen = Selection(identifiers=tuple(f"{PREFIX}{handle(number)}" for number in (3, 5)))
    withdraw(world.store, world.configuration(), world.runtime(), chosen, "a court said so")
    yield Library(world, rugs, one)
    world.close()


def test_a_template_is_its_text_at_any_time(library: Library) -> None:
    repec, first = library.world, library.rugs
    name = f"{PREFIX}{handle(2)}"
    assert b"On Carpets" in read(repec, name)
    assert b"On Rugs" in read(repec, name, at=first)
    assert code(repec, name, at=first - timedelta(days=9)) == "not-held"
    found = contents_of(repec).find(manifest_of(repec), record_of(repec, name))
    assert (found.media_type, found.url) == ("text/plain; charset=utf-8", "")


def test_a_file_behind_a_url_is_given_by_its_template_or_by_itself(library: Library) -> None:
    repec, then = library.world, library.one
    name = f"{PREFIX}{handle(1)}"
    for asked in ((name, WRITTEN), (name, URL), (None, URL)):
        assert read(repec, asked[0], file=asked[1]) == b"%PDF two"
        assert read(repec, asked[0], file=asked[1], at=then) == b"%PDF one"
        early = then - timedelta(seconds=1)
        assert code(repec, asked[0], file=asked[1], at=early) == "not-held"
    assert code(repec, name, file="http://a.org/never") == "not-held"
    assert code(repec, name, file="http://a.org/other") == "unknown"
    assert b"On Rugs" in read(repec, None, file=handle(1))
    assert code(repec, None, file=handle(77)) == "not-held"
    assert code(repec, None) == "unknown"
    found = contents_of(repec).find(manifest_of(repec), None, file=URL)
    assert (found.identifier, found.media_type, found.url) == (URL, "application/pdf", URL)


def test_nothing_of_a_withdrawn_template_is_given_by_any_name(library: Library) -> None:
    name = f"{PREFIX}{handle(3)}"
    for asked in ((name, ""), (name, WITHDRAWN), (None, WITHDRAWN), (None, handle(3))):
        assert code(library.world, asked[0], file=asked[1]) == "withdrawn"


def test_a_file_that_a_published_template_names_too_is_given_all_the_same(library: Library) -> None:
    assert read(library.world, None, file=SHARED) == b"%PDF " + SHARED.encode()
    assert read(library.world, f"{PREFIX}{handle(6)}", file=SHARED) == b"%PDF " + SHARED.encode()
    assert code(library.world, f"{PREFIX}{handle(5)}", file=SHARED) == "withdrawn"


def test_a_file_that_no_template_names_any_more_is_not_given_by_its_url(library: Library) -> None:
    assert code(library.world, None, file=LEFT) == "withdrawn"
