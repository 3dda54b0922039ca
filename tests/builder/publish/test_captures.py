"""The rules by which copies of a capture become one, whatever their order and number."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, permutations
from pathlib import Path
from typing import Any

import pytest

from builder.intake.captures import Capture
from builder.publish.publish import publish
from builder.store.folder import FolderStore
from functions.reading.repository import PublishedRecord
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.conftest import World, capture

pytestmark = pytest.mark.shared(3)

FIRST = capture(1, sets=("domain:cz:a", "mime:text:plain"), content_mime_type="text/plain")
TWIN = capture(
    1,
    sets=("domain:cz:a", "mime:text:html"),
    content_mime_type=None,
    warc_filename="twin.warc.gz",
    warc_record_offset=7,
)


def fields(world: World, *names: str) -> tuple[object, ...]:
    """Return some columns of the only record."""
    record, _ = only(world)
    return tuple(record.fields[name] for name in names)


def state(world: World) -> tuple[object, ...]:
    """Return title, type and sets of the only record, and its number of versions."""
    record, last = only(world)
    return (record.fields["title"], record.fields["content_mime_type"], record.sets, last)


def only(world: World) -> tuple[PublishedRecord, int]:
    """Return the only record, and the last position."""
    (record,) = world.listed()
    return record, world.newest().last_position


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", list(permutations([FIRST, TWIN])), ids=["first", "twin"])
def test_copies_with_different_types_settle(world: World, order: tuple[Capture, ...]) -> None:
    for copy in order:
        world.add([copy])
    settled = state(world)
    for copy in order:  # and so ever after, as nothing has changed
        built = world.add([copy])
        assert (built.new, built.changed, built.unchanged) == (0, 0, 1)
    assert state(world) == settled
    assert state(world)[1] == "text/plain"
    assert len([s for s in state(world)[2] if s.startswith("mime:")]) == 1  # type: ignore[attr-defined]


def test_copies_with_different_types_in_one_intake_settle(
    make_world: Callable[[str], World],
) -> None:
    found = []
    for name, order in (("one", [FIRST, TWIN]), ("other", [TWIN, FIRST])):
        world = make_world(name)
        world.add(order)
        found.append(state(world))
        assert world.add([TWIN]).changed == 0
    assert found[0] == found[1]
    assert found[0][2] == ("domain:cz:a", "mime:text:plain")


def test_of_two_readings_of_a_record_the_later_counts(make_world: Callable[[str], World]) -> None:
    """Once published together and once apart: the same in the end."""
    old = capture(1, title="old", sets=("domain:cz:a",))
    new = capture(1, title="new", sets=("domain:cz:a:b",))
    together, apart = make_world("together"), make_world("apart")
    together.ingest([old], ("collection:x",))
    together.add([new])
    apart.add([old], ("collection:x",))
    apart.add([new])
    assert state(apart)[:3] == ("new", None, ("collection:x", "domain:cz:a:b"))
    assert state(together)[:3] == state(apart)[:3]


def test_names_of_local_files_mean_nothing(world: World, tmp_path: Path) -> None:
    """Those of a bucket's objects are of this machine's making."""

    class Renamed(FolderStore):
        numbers = count(99, -1)

        def local(
            self, key: str, spans: Sequence[tuple[int, int]] | None = None, size: int | None = None
        ) -> Path:
            name = f"{next(self.numbers)}.parquet"
            return Path(shutil.copy(super().local(key), tmp_path / name))

    for number in range(4):
        world.ingest([capture(1, title=str(number))])
    publish(Renamed(world.root), world.configuration(), world.runtime())
    assert state(world)[0] == "3"


def test_a_capture_leads_before_its_revisit(world: World) -> None:
    revisit = capture(
        1, warc_record_type="revisit", title=None, content_length=0, warc_filename="0.warc.gz"
    )
    whole = capture(1, content_length=500)
    world.add([revisit])
    assert world.add([whole]).changed == 1
    assert world.add([revisit]).changed == 0
    names = ("warc_record_type", "content_length", "warc_filename")
    assert fields(world, *names) == ("response", 500, "a.warc.gz")


@pytest.mark.thorough
def test_many_copies_fit_into_little_memory(world: World) -> None:
    """Every capture twice; what does not fit is sorted on disk."""
    many = [capture(n, title=f"{n} " + "long " * 60) for n in range(15_000)]
    world.ingest(many)
    world.ingest([capture(n, warc_filename="b.warc.gz") for n in range(15_000)])
    built = world.publish(SHEAF_PUBLISH_MEMORY="256")
    assert (built.new, built.records) == (15_000, 15_000)


INDEXED = capture(
    1,
    content_length=None,
    title=None,
    content_charset=None,
    content_mime_type="text/plain",
    sets=("domain:cz:a", "mime:text:plain"),
    fetch_status=200,
)
ARCHIVED = capture(
    1,
    content_length=500,
    title="Whole",
    content_mime_type="text/html",
    fetch_status=None,
    sets=("domain:cz:a", "mime:text:html"),
    content_charset="utf-8",
    content_charset_source="declared",
)


def test_of_two_in_one_part_the_later_counts_whatever_the_threads(
    make_world: Callable[[str], World],
) -> None:
    """Files of one name that are read by one worker come into one part."""
    both = [
        replace(capture(n), content_mime_type=kind)
        for kind in ("text/aaaa", "text/bbbb")
        for n in range(3000)
    ]
    found = []
    for threads in (1, 4):
        world = make_world(f"of-{threads}")
        world.ingest(both)
        runtime = replace(world.runtime(), threads=threads)
        manifest = publish(world.store, world.configuration(), runtime).manifest
        assert manifest is not None
        files = list(Catalogue(world.store).files(manifest, "records"))
        found.append([file.key for file in files])
        with engine.connect() as connection:
            kinds = connection.execute(
                f"SELECT DISTINCT content_mime_type FROM {engine.table('$files')}",
                {"files": [str(world.root / file.key) for file in files]},
            ).fetchall()
        assert kinds == [("text/bbbb",)]
    assert found[0] == found[1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("parts", ["together", "index-first", "archive-first"])
def test_an_archive_leads_before_an_index(world: World, parts: str) -> None:
    """Each fills what the other lacks; collections of both stay, whichever came first.

    That the index has the capture at the same place, elsewhere or nowhere makes no difference.
    """
    places = {capture(number).identity: place for number, place in enumerate((100, 7, None))}
    index = [replace(INDEXED, identity=i, warc_record_offset=p) for i, p in places.items()]
    archive = [replace(ARCHIVED, identity=i) for i in places]
    first, second = (archive, index) if parts == "archive-first" else (index, archive)
    world.ingest(first, ("collection:x",))
    if parts != "together":
        world.publish()
    world.add(second, ("collection:y",))
    records = world.listed()
    assert len(records) == len(places)
    columns = (
        *("title", "content_mime_type", "content_length", "fetch_status"),
        *("content_charset", "content_charset_source"),
    )
    for record in records:
        found = [record.fields[name] for name in columns]
        assert found == ["Whole", "text/html", 500, 200, "utf-8", "declared"]
        assert record.sets == ("collection:x", "collection:y", "domain:cz:a", "mime:text:html")
    for again in (index, archive):
        assert world.add(again).changed == 0


WHOLE = capture(1, sets=("domain:cz:a",), title=None, content_length=7)
DAMAGED = capture(
    1,
    sets=("domain:cz:a", "collection:x"),
    title="Torn",
    content_length=7,
    content_damaged="checksum",
    content_truncated="unspecified",
    warc_filename="a-copy.warc.gz",
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("order", list(permutations([WHOLE, DAMAGED])), ids=["whole", "damaged"])
def test_a_whole_copy_wins_over_a_damaged_one(
    world: World, order: tuple[Capture, ...], together: bool
) -> None:
    for copies in [order] if together else [[copy] for copy in order]:
        world.add(list(copies))
    names = ("warc_filename", "title", "content_damaged", "content_truncated")
    assert fields(world, *names) == ("a.warc.gz", None, None, None)
    assert state(world)[2] == ("collection:x", "domain:cz:a")
    assert world.add([DAMAGED]).changed == 0


ROTTEN = replace(WHOLE, content_damaged="checksum")


def test_the_same_record_read_again_tells_of_its_damage_and_of_its_repair(world: World) -> None:
    marks = []
    for copy in (WHOLE, ROTTEN, ROTTEN, WHOLE):
        changed = world.add([copy]).changed
        marks.append((changed, *fields(world, "content_damaged")))
    assert marks == [(0, None), (1, "checksum"), (0, "checksum"), (1, None)]


def asked(method: str | None = "POST", **changes: Any) -> Capture:
    key = f"cz,a)/?__wb_method={method.lower()}" if method else "cz,a)/"
    told = {"fetch_method": method, "url_surtkey": key, "content_length": 5, **changes}
    return capture(1, **told)


@pytest.mark.parametrize(
    ("first", "second", "changed"),
    [
        # A SURT follows from the URL, so by itself it is no reason for a new datestamp.
        (
            capture(1, url_surtkey="192.0.2.1)/"),
            capture(1, url_surtkey="1,2,0,192)/"),
            None,
        ),
        (replace(ARCHIVED, fetch_status=200), INDEXED, None),
        # So a store from before is put right.
        (asked(None), asked(), 1),
    ],
    ids=["surt", "index-after-archive", "method"],
)
def test_a_record_that_is_read_again(
    world: World, first: Capture, second: Capture, changed: int | None
) -> None:
    """Only what is told anew gets a new datestamp; another item stays as it is."""
    for one in (first, second):
        built = world.add([one, capture(2, content_length=5)])
    assert (built.changed if built.manifest else None) == changed


@pytest.mark.sampled(2)
@pytest.mark.parametrize("together", [True, False])
def test_a_request_is_that_of_one_copy(world: World, together: bool) -> None:
    """An archive file's account stands; an index that tells no method takes none away."""
    cases = {
        # name: first copy, second copy, whether the item is the answer to a POST
        "index-silent": (asked(), asked(None, content_length=None), True),
        "index-told": (asked(None, content_length=None), asked(), True),
        "index-alone": (asked(None, content_length=None), asked(content_length=None), True),
        "page": (asked(None), asked(warc_filename="b.warc.gz"), False),
    }
    for name, (one, other, _) in cases.items():
        some = [replace(copy, identity=name * 2, url=f"http://{name}/") for copy in (one, other)]
        for copies in [some] if together else [[copy] for copy in some]:
            world.add(copies)
    for record in world.listed():
        name = record.fields["url"].removeprefix("http://").rstrip("/")
        is_post = cases[name][2]
        expected = ("POST", "cz,a)/?__wb_method=post") if is_post else (None, "cz,a)/")
        assert (record.fields["fetch_method"], record.fields["url_surtkey"]) == expected
