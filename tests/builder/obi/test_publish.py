"""Templates as items: published, changed, lost, back, withdrawn; and harvested meanwhile."""

import random
import shutil
import tarfile
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.kinds.templates import obi_history, template_documents, templates
from builder.obi import replay
from builder.obi.content import FailureRow, Incidence
from builder.obi.history import DATED, history
from builder.publish.publish import publish
from builder.publish.rebuild import rebuild
from builder.store.parquet import data_file
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import layout, oai_name, obi
from functions.snapshot.errors import ConfigurationError, DamagedStore
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.bucket import fresh
from tests.builder.beginning import begin
from tests.builder.conftest import capture, resize
from tests.builder.obi.archive import PREFIX, Repec, harvested, state, within
from tests.builder.obi.logs import describe
from tests.builder.sources.redif.test_corpus import DATA
from tests.builder.sources.redif.trees import paper
from tests.builder.verify.test_verify import (
    files,
    found,
    rewritten,
    table_of,
    with_column,
)
from tests.functions.oai.client import Client

pytestmark = pytest.mark.shared(3)

ONE, TWO = (f"{PREFIX}RePEc:aaa:wpaper:{n}" for n in (1, 2))


def published(repec: Repec, *numbers: int) -> None:
    """Begin with papers 1, in a.rdf, and 2, in b.rdf, or one of them alone, all published."""
    names = {f"aaa/wpaper/{'ab'[n - 1]}.rdf": paper(n) for n in numbers}

    def fill(world: Repec) -> None:
        world.files |= names
        world.publish_tree()

    begin(repec, ("papers of RePEc", *numbers), lambda _: fill(repec))
    repec.files |= names


def rows_of(repec: Repec, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table of the newest snapshot, in order."""
    return [row for file in files(repec, table) for row in table_of(repec, file.key).to_pylist()]


def sound(repec: Repec) -> list[str]:
    return [str(f) for f in repec.verify().findings if f.kind == "damage"]


def names_of_sets(repec: Repec) -> dict[str, str]:
    with repec.asked() as client:
        page = client.get("ListSets")
    return dict(zip(page.text("setSpec"), page.text("setName"), strict=True))


def states(repec: Repec, **arguments: str) -> dict[str, Any]:
    """Return what a harvester gets by then."""
    with repec.asked() as client:
        return state(client, **arguments)


def test_templates_are_items_in_the_sets_of_archive_series_and_type(repec: Repec) -> None:
    built = repec.publish_tree(a=paper(1), b=paper(2))
    assert (built.new, built.changed, built.records) == (4, 0, 4)
    assert {name.removeprefix(PREFIX): value[2] for name, value in states(repec).items()} == {
        "RePEc:aaa": ("RePEc:aaa", "type:archive"),
        "RePEc:aaa:wpaper": ("RePEc:aaa:wpaper", "type:series"),
        "RePEc:aaa:wpaper:1": ("RePEc:aaa:wpaper", "type:paper"),
        "RePEc:aaa:wpaper:2": ("RePEc:aaa:wpaper", "type:paper"),
    }
    names = {
        "RePEc": "RePEc",
        "RePEc:aaa": "Rugs",
        "RePEc:aaa:wpaper": "Working Papers",
        "type": "Templates of all types",
        "type:archive": "Templates of type archive",
        "type:paper": "Templates of type paper",
        "type:series": "Templates of type series",
    }
    assert names_of_sets(repec) == names
    assert sound(repec) == []
    # A set is called what its series is called now.
    seri = repec.files["aaa/aaaseri.rdf"]
    repec.files["aaa/aaaseri.rdf"] = seri.replace(b"Working Papers", b"Other Papers")
    repec.publish_tree(b=paper(2))
    repec.take(b=paper(2, "Other"))  # the names of sets that are written again stay
    repec.publish()
    assert names_of_sets(repec) == {**names, "RePEc:aaa:wpaper": "Other Papers"}


def test_a_change_is_of_one_template_and_a_lost_one_is_a_tombstone_and_revives(
    repec: Repec,
) -> None:
    published(repec, 1, 2)
    before = states(repec)
    built = repec.publish_tree(a=paper(1, "Other rugs"))
    assert (built.new, built.changed) == (0, 1)
    assert repec.publish_tree().changed == 0
    after = states(repec)
    assert {name for name in after if after[name] != before[name]} == {ONE}
    built = repec.publish_tree(a=None)
    assert (built.changed, built.deleted) == (1, 1)
    with repec.asked() as client:
        gone = state(client)
        assert client.listed(set="RePEc:aaa:wpaper")[-1] == (ONE, True)
    assert gone[ONE][1:3] == (True, ("RePEc:aaa:wpaper", "type:paper"))
    assert (built := repec.publish_tree(a=paper(1))).changed == 1
    assert built.deleted == 0
    back = states(repec)
    assert back[ONE][1:] == before[ONE][1:]
    assert back[ONE][0] > gone[ONE][0] > after[ONE][0] > before[ONE][0]
    assert sound(repec) == []


def test_what_happened_and_was_undone_between_two_publishes_never_was(repec: Repec) -> None:
    """A template that came and went, and one that was lost and came back."""
    published(repec, 2)
    repec.take(a=paper(1), b=None)
    repec.take(a=None, b=paper(2))
    built = repec.publish()
    assert (built.new, built.changed) == (0, 0)
    assert ONE not in states(repec)


def test_an_event_of_a_file_stamps_no_template_anew(repec: Repec) -> None:
    published(repec, 1)
    url = "http://example.org/rugs.pdf"

    def store(body: bytes) -> None:
        key = f"obi/{len(body)}"
        repec.gathered(
            describe(key, body, url, "fobi"),
            Incidence(id=url, kind="fobi", what="appearance", key=key),
        )

    store(b"%PDF")
    repec.publish()  # now the template has a link to it
    before = states(repec)
    store(b"%PDF 2")
    built = repec.publish()
    assert built.manifest is not None  # the tables tell of it
    assert (built.new, built.changed) == (0, 0)
    repec.gathered(FailureRow(id=url, code="timeout"))
    repec.publish()
    assert states(repec) == before
    assert repec.newest().run == history(repec.store)[-1].tist
    assert repec.newest().rows("failure") == 1


def test_a_run_without_a_commit_is_not_seen(repec: Repec) -> None:
    repec.take(a=paper(1))
    last = history(repec.store)[-1]
    repec.publish()
    repec.store.create("obi/;runs/" + str(last.tist + 5)[::-1] + "/open.json", b"{}")
    assert repec.publish().manifest is None


def test_a_run_whose_documents_were_edited_is_not_published(repec: Repec) -> None:
    repec.take(a=paper(1))
    place = next(k for k in repec.store.keys("obi/;runs/") if k.endswith("documents.parquet"))
    repec.store.remove(place)
    repec.store.create(place, b"")
    with pytest.raises(DamagedStore, match=place):
        repec.publish()


def test_captures_and_templates_lie_side_by_side(repec: Repec) -> None:
    repec.ingest([capture(n) for n in range(40)], ("collection:c",))
    repec.take(a=paper(1), b=paper(2))
    repec.publish()
    repec.ingest([capture(n) for n in range(40, 60)])
    repec.take(c=paper(3))
    repec.publish()
    with repec.asked(pages_records=7) as client:
        found = state(client)
        assert len(found) == 60 + 5 + 1
        assert [*state(client, metadataPrefix="amf")] == [n for n in found if "RePEc" in n]
        assert len(state(client, set="type:paper")) == 3
        for name in (ONE, next(n for n in found if "RePEc" not in n)):
            record = client.get("GetRecord", identifier=name, metadataPrefix="oai_dc")
            assert record.codes == []
            assert client.get("ListMetadataFormats", identifier=name).codes == []
    assert sound(repec) == []


@pytest.mark.thorough
def test_a_withdrawn_template_stays_away_whatever_is_ingested(repec: Repec) -> None:
    published(repec, 1, 2)
    repec.withdraw(ONE)
    assert repec.publish_tree(a=paper(1, "Other rugs")).changed == 0
    repec.publish_tree(a=None)
    repec.publish_tree(a=paper(1, "Third rugs"))
    assert states(repec)[ONE][1]
    for file in Catalogue(repec.store).files(repec.newest(), "records"):
        assert b"Other rugs" not in repec.store.read(file.key)
    restored = repec.reinstate(ONE)
    assert restored.built.reinstated == 1
    back = states(repec)[ONE]
    assert not back[1]
    assert "Third rugs" in back[3]  # as it is in the obi store, not as it was when it was withdrawn
    assert sound(repec) == []


def test_a_bare_handle_names_a_template_and_nothing_else(repec: Repec) -> None:
    odd = 'a%41"b<c>&d=e?f\\g`{h}/i'
    data = paper(1).replace(b"wpaper:1", f"wpaper:{odd}".encode())
    repec.take(x=paper(1), a=data, b=paper(1).replace(b"wpaper:1", b"wpaper:aA"))
    assert repec.publish().new == 5
    with repec.asked() as client:
        (name,) = (n for n in state(client) if n.endswith(":wpaper:1"))
        handle = name.removeprefix(PREFIX)
        for given in (handle, handle.lower(), f"oai:{handle}"):
            page = client.get("GetRecord", identifier=given, metadataPrefix="oai_dc")
            assert page.codes == []
            assert page.root.findtext(".//{*}header/{*}identifier") == name
            assert client.get("ListMetadataFormats", identifier=given).codes == []
        for given in (f"{handle}x", "RePEc:aaa:wpaper", "oai:other.org:" + handle, "wpaper:1"):
            page = client.get("GetRecord", identifier=given, metadataPrefix="oai_dc")
            assert page.codes == ([] if given == "RePEc:aaa:wpaper" else ["idDoesNotExist"])
        # One of odd characters is a valid identifier.
        name = f"{PREFIX}RePEc:aaa:wpaper:a%2541%22b%3Cc%3E&d=e?f%5Cg%60%7Bh%7D/i"
        page = client.get("GetRecord", identifier=name, metadataPrefix="amf")
        assert page.codes == []
        (text,) = page.root.iter("{http://amf.openlib.org}text")
        assert text.get("id") == f"RePEc:aaa:wpaper:{odd}"
    assert sound(repec) == []


def test_another_prefix_of_identifiers_is_refused_once_published(repec: Repec) -> None:
    repec.take(a=paper(1))
    settings = {"SHEAF_REDIF_IDENTIFIER_PREFIX": "oai:"}
    repec.publish(**settings)
    with repec.asked() as client:
        assert f"oai:{ONE.removeprefix(PREFIX)}" in state(client)
        page = client.get("Identify")
        assert not [*page.root.iter("{*}oai-identifier")]
    repec.take(a=paper(1, "Other rugs"))
    lines: list[str] = []
    runtime = replace(repec.runtime(), say=lines.append)
    with pytest.raises(ConfigurationError, match=r"redif\.identifier_prefix"):
        publish(repec.store, repec.configuration(), runtime)
    assert lines == []  # before any work, which may take hours
    assert repec.publish(**settings).changed == 1
    assert sound(repec) == []


@pytest.mark.thorough
def test_the_tables_can_be_made_anew_byte_for_byte_out_of_the_store(
    repec: Repec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in obi.TABLES:
        assert layout.file_groups(table) == layout.FILE_GROUPS
    resize(monkeypatch, GROUP_ROWS=3, FILE_GROUPS=2)
    repec.publish_tree(a=paper(1), b=paper(2), c=paper(3))
    repec.gathered(FailureRow(id="http://example.org/rugs.pdf", code="timeout"))
    repec.publish()
    repec.publish_tree(a=None, b=paper(2, "Other rugs"), d=paper(4))
    catalogue, shown = Catalogue(repec.store), repec.newest()
    for threads, memory in ((1, 512), (4, 128)):
        scratch = tmp_path / f"scratch-{threads}"
        scratch.mkdir()
        with engine.connect(threads=threads, memory_megabytes=memory, scratch=scratch) as database:
            replay.fold(database, repec.store, history(repec.store), scratch)
            for table in obi.TABLES:
                made = obi_history.table_keys(database, table, scratch)
                assert made == [f.key for f in catalogue.files(shown, table)], table
                assert made or table == "redirect"


@pytest.mark.thorough
def test_the_size_of_ranges_and_files_changes_no_record(
    repec: Repec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents of several runs, gathered files and a lost template, read in ranges and at once."""
    texts = {name: paper(n) for n, name in enumerate("bcdef", 2)}
    repec.take(a=paper(1))
    repec.take(**texts)
    repec.take(b=paper(2, "Other rugs"), c=None, g=paper(7))
    url = "http://example.org/rugs.pdf"
    repec.gathered(describe("obi/x", b"x", url, "fobi"))
    shutil.copytree(repec.root, tmp_path / "whole" / "store")
    whole = Repec(tmp_path / "whole" / "store", clock=repec.clock)
    monkeypatch.setattr(layout, "GROUP_ROWS", 3)
    assert whole.publish().new == 8
    monkeypatch.setattr(templates, "_RANGE_MOST", 2)
    monkeypatch.setattr(template_documents, "_AT_ONCE", 2)
    monkeypatch.setattr(data_file, "FILE_BYTES", 1)
    assert repec.publish().new == 8
    assert len(files(repec, "records")) == 3
    assert (found := rows_of(repec, "records")) == rows_of(whole, "records")
    assert sum('"gathered"' in row["document"] for row in found) == 6
    assert rows_of(repec, "sets") == rows_of(whole, "sets")


@pytest.mark.thorough
def test_files_of_tables_that_are_as_they_were_are_shared(
    repec: Repec, monkeypatch: pytest.MonkeyPatch
) -> None:
    resize(monkeypatch, GROUP_ROWS=2, FILE_GROUPS=1)
    published(repec, 1, 2)
    before = [f.key for f in Catalogue(repec.store).files(repec.newest(), "incidence")]
    repec.publish_tree(c=paper(3))
    after = [f.key for f in Catalogue(repec.store).files(repec.newest(), "incidence")]
    assert after[: len(before)] == before
    assert len(after) > len(before)


@pytest.mark.thorough
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no real ReDIF at {DATA}")
def test_a_harvester_who_comes_after_each_replayed_tarball_misses_nothing(repec: Repec) -> None:
    """Scenario 17: each time with from = the responseDate of the harvest before.

    Three harvesters, of everything and of two sets, who know nothing of each other.
    """
    mirrors: dict[str, dict[str, Any]] = {"": {}, "RePEc:epo": {}, "type:paper": {}}
    since: dict[str, str] = {}
    for path in sorted((DATA / "tarballs").glob("RePEc_*.tar.gz")):
        repec.replay(path)
        with repec.asked(pages_records=200) as client:  # while the run is not published yet
            for of_set, begun in since.items():
                more = {"set": of_set} if of_set else {}
                since[of_set] = harvested(client, mirrors[of_set], begun, **more)
        repec.publish()
        with repec.asked(pages_records=200) as client:
            whole = state(client)
            for of_set, mirror in mirrors.items():
                more = {"set": of_set} if of_set else {}
                since[of_set] = harvested(client, mirror, since.get(of_set), **more)
                assert mirror == (within(whole, of_set) if of_set else whole), (path.name, of_set)
    for of_set in ("", "type:paper"):
        assert any(deleted for _, deleted, _, _ in mirrors[of_set].values())
    assert sound(repec) == []


def test_tables_are_what_the_logs_come_to_whoever_wrote_their_files(repec: Repec) -> None:
    published(repec, 1)
    (file,) = files(repec, "incidence")
    rows = table_of(repec, file.key)
    key = rewritten(repec, file.key, rows)  # by another library
    assert key != file.key
    assert "obi-tables" not in {code for code, _ in found(repec)}
    changed = ["change", *rows.column("what").to_pylist()[1:]]
    rewritten(repec, key, with_column(rows, "what", changed))
    assert "obi-tables" in {code for code, _ in found(repec)}
    shown = repec.newest()
    less = {table: leaves for table, leaves in shown.tables.items() if table != "incidence"}
    repec.store.remove(shown.key)
    repec.store.create(shown.key, replace(shown, tables=less).to_json())
    assert any("obi-tables" in one for one in sound(repec))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("document", [None, "{", "", '{"a": 1'])
def test_a_template_without_what_it_holds_is_no_answer(repec: Repec, document: str | None) -> None:
    repec.publish_tree(a=paper(1))
    (file,) = files(repec, "records")
    rows = table_of(repec, file.key)
    documents = [document, *rows.column("document").to_pylist()[1:]]
    rewritten(repec, file.key, with_column(rows, "document", documents))
    with repec.asked() as client:
        asked = {"verb": "ListRecords", "metadataPrefix": "oai_dc"}
        assert client.raw("&".join(f"{k}={v}" for k, v in asked.items()))["statusCode"] == 503


def test_faults_and_files_of_redif_are_in_the_tables(repec: Repec) -> None:
    assert repec.publish_tree(a=paper(1).replace(b"Title:", b"Titel:")).faults > 0
    repec.publish_tree(a=paper(1))
    with engine.connect() as database:
        database.execute(f"SET VARIABLE root = '{repec.root}/'")
        text = repec.store.read(layout.views_key(repec.newest().snapshot)).decode()
        database.execute(text)
        faults = database.execute("SELECT source, code FROM faults").fetchall()
        assert ("aaa/wpaper/a.rdf", "unknown-attribute") in faults
        sources = database.execute(
            "SELECT source, format, faults > 0 FROM sources ORDER BY source, faults DESC"
        ).fetchall()
        assert ("aaa/wpaper/a.rdf", "redif", True) in sources
        assert ("aaa/wpaper/a.rdf", "redif", False) in sources
        templates = database.execute("SELECT handle, title FROM templates ORDER BY 1").fetchall()
        assert [title for _, title in templates[1:]] == ["Working Papers", "On Rugs"]
        assert templates[0][1] == "Rugs"
        for table in obi.TABLES:
            assert database.execute(f"SELECT * FROM {table}")


@pytest.mark.thorough
@pytest.mark.parametrize("server", ["moto_server", "weed_server"])
def test_a_bucket_gives_the_same_snapshot_as_a_folder(
    repec: Repec, request: pytest.FixtureRequest, server: str
) -> None:
    repec.take(a=paper(1), b=paper(2))
    repec.take(a=None, b=paper(2, "Other rugs"))
    repec.publish()
    with closing(fresh(request.getfixturevalue(server))) as store:
        for place in repec.store.keys("obi/"):
            store.create(place, repec.store.read(place))
        built = publish(store, repec.configuration(), repec.runtime())
        assert built.manifest is not None
        own, there = repec.newest(), built.manifest
        assert (own.tables, own.run) == (there.tables, there.run)
        with closing(DuckRepository(store)) as repository:
            client = Client(repository, repository_namespace="archive.example.org")
            repec.clock.sleep(30)
            client.clock.now = repec.clock.now
            assert len(state(client)) == 3
        assert not repec.verify(store).damaged


def test_whatever_happens_harvesters_miss_nothing(repec: Repec) -> None:
    """Papers come, change, go and come back, are withdrawn and restored, between publishes.

    In this walk each of that happens, also twice between two publishes and to withdrawn papers.
    """
    draw = random.Random(619)
    there: dict[int, str] = {}
    withdrawn: set[int] = set()
    mirrors: list[tuple[dict[str, Any], str | None]] = [({}, None), ({}, None)]
    titles = ("One", "Two", "Three")
    for step in range(7):
        for number in draw.sample(range(8), 6):
            lost = number in there and draw.random() < 0.4
            if lost:
                del there[number]
            else:
                there[number] = draw.choice(titles)
        names = {f"p{n}": paper(n, there[n]) if n in there else None for n in range(8)}
        repec.take(**names)
        if draw.random() < 0.3 and step:
            continue  # the next publish shows both
        repec.publish()
        number = draw.choice(sorted(there) or [0])
        chosen = f"{PREFIX}RePEc:aaa:wpaper:{number}"
        if number in withdrawn:
            repec.reinstate(chosen)
            withdrawn.discard(number)
        elif there and draw.random() < 0.4:
            repec.withdraw(chosen)
            withdrawn.add(number)
        with repec.asked(pages_records=3) as client:
            whole = state(client)
            turn = draw.randrange(2)
            mirror, since = mirrors[turn]
            mirrors[turn] = mirror, harvested(client, mirror, since)
            assert mirror == whole, step
        live = {name for name, (_, deleted, _, _) in whole.items() if not deleted}
        assert {f"{PREFIX}RePEc:aaa:wpaper:{n}" for n in there.keys() - withdrawn} == {
            name for name in live if name.count(":") == 5
        }
        for n in there.keys() - withdrawn:
            assert there[n] in whole[f"{PREFIX}RePEc:aaa:wpaper:{n}"][3]
    assert sound(repec) == []


def test_no_handle_takes_the_place_of_a_capture(repec: Repec) -> None:
    repec.add([capture(1)])
    before = states(repec)
    (taken,) = before
    local = taken.rpartition(":")[2]
    repec.publish_tree(a=paper(1) + paper(2).replace(b"RePEc:aaa:wpaper:2", local.encode()))
    after = states(repec)
    assert after[taken] == before[taken]
    assert f"{PREFIX}%{ord(local[0]):02X}{local[1:]}" in after
    assert len(after) == 5


@pytest.mark.parametrize(
    "handle", ["RePEc:aaa:wpaper:1", "mapin:aaa", "pab1", "%41", "<x", "é", ".", "\x01a", "a'b"]
)
def test_the_database_makes_the_same_identifiers(handle: str) -> None:
    with closing(engine.connect(threads=1, memory_megabytes=128)) as connection:
        sql = f"SELECT {oai_name.template_identifier_sql('$prefix', '$handle')}"
        values = {"prefix": PREFIX, "handle": handle}
        assert connection.execute(sql, values).fetchall() == [
            (oai_name.template_identifier(PREFIX, handle),)
        ]


def test_a_store_to_which_an_older_state_was_added_is_read_and_rebuilt(tmp_path: Path) -> None:
    """Sheaf 0.2 added the state of day 1 after that of day 3, and published after each."""
    (tmp_path / "store").mkdir()
    repec = Repec(tmp_path / "store")
    with tarfile.open(Path(__file__).with_name("dated.tar.xz")) as archived:
        archived.extractall(repec.root, filter="data")
    repec.clock.now += timedelta(days=1)
    assert rebuild(repec.store, repec.configuration(), repec.runtime(), {}) == 2
    events = [
        ((row["tist"] - 1_700_000_000) // 86_400, row["id"][-1], row["what"])
        for row in rows_of(repec, "incidence")
        if row["id"].startswith("RePEc:aaa:wpaper:")
    ]
    assert events == [
        *((1, number, "appearance") for number in "123"),
        (3, "1", "change"),
        (3, "3", "deletion"),
    ]
    with repec.asked() as client:
        stamps = {name.partition("RePEc:")[2]: row[:2] for name, row in state(client).items()}
    assert stamps == {
        "aaa:wpaper:1": ("2026-01-01T00:00:22Z", False),
        **{f"aaa{rest}": ("2026-01-01T00:01:14Z", False) for rest in ("", ":wpaper", ":wpaper:2")},
    }
    assert sound(repec) == []
    repec.take(new=paper(4))
    assert [run.format for run in history(repec.store)] == [2, DATED, 2]
    repec.publish()
    repec.close()
