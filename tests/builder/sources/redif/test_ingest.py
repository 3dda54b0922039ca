"""`sheaf ingest` of ReDIF: what is stored, what is told, and how it goes on when it was cut off."""

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from builder.obi import content, log
from builder.obi import key as key_
from builder.obi import run as runs
from builder.obi.content import Refipo, Version
from builder.obi.history import COMMIT, DOCUMENTS, LOG, OPEN, history, standing
from builder.obi.key import key
from builder.sources.redif import ingest as redif
from builder.sources.redif import spool
from builder.sources.redif.form import template
from builder.store.folder import FolderStore
from functions.snapshot import layout
from tests.bucket import Bucket
from tests.builder.obi.logs import documents as logged_documents
from tests.builder.sources.redif.samples import PERSON, SERIES
from tests.builder.sources.redif.trees import (
    archive,
    counts,
    documents,
    events,
    faults,
    ingested,
    paper,
    papers,
    rows,
    store_of,
    tarball,
    text,
    tree,
    versions,
)
from tests.e2e.conftest import Home, make_home, warc
from tests.e2e.test_commands import PAGES, one_line

pytestmark = pytest.mark.shared(3)

RESTRICTED = b"Restriction: Members only\n"


def spread(templates: list[bytes], files: int) -> dict[str, bytes]:
    """Return the templates shuffled over so many files of the series."""
    names = [f"aaa/wpaper/{number}.rdf" for number in range(files)]
    return {
        name: b"\n\n# another\n".join(templates[number::files][::-1])
        for number, name in enumerate(names)
    }


def as_windows_saves_it(data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")


def test_another_encoding_other_line_ends_and_other_files_are_no_incidence(
    home: Home, root: Path
) -> None:
    some = [paper(number, "Über Teppiche") for number in range(40)]
    first = ingested(home, tree(root, {**archive(), "aaa/wpaper/all.rdf": b"\n".join(some)}))
    assert counts(first) == (42, 0, 0, 0, 0)
    saved = {
        name: as_windows_saves_it(data) for name, data in {**archive(), **spread(some, 7)}.items()
    }
    again = ingested(home, tree(root, saved))
    assert counts(again) == (0, 0, 0, 0, 42)
    assert events(home) == []
    assert again["objects"] == again["new_files"] == 9  # the files, as they are now
    some[17] = some[17].replace(b"They tie", b"They tye")
    after = tree(root, {**archive(), **spread(some, 7)})
    changed = ingested(home, tree(root, {n: as_windows_saves_it(d) for n, d in _files(after)}))
    assert counts(changed) == (0, 0, 1, 0, 41)
    assert events(home) == [("RePEc:aaa:wpaper:17", "change", False)]
    assert (changed["objects"], changed["new_files"]) == (2, 1)  # the template, and its file
    assert b"They tye" in text(home, changed["run"], "RePEc:aaa:wpaper:17")
    assert b"They tie" in text(home, first["run"], "RePEc:aaa:wpaper:17")


MEMBERS = (OPEN, DOCUMENTS, LOG, COMMIT)


def _files(folder: Path) -> list[tuple[str, bytes]]:
    return [
        (path.relative_to(folder).as_posix(), path.read_bytes())
        for path in sorted(folder.rglob("*.rdf"))
    ]


def test_what_is_stored_of_a_template_is_its_text(home: Home, root: Path) -> None:
    lines = b"junk\n" + paper(1, "Café").replace(b"Abstract", b"# note\n\nAbstract")
    data = lines.replace("é".encode(), b"\xe9").replace(b"\n", b"\r\n")
    account = ingested(home, tree(root, {**archive(), "aaa/wpaper/p.rdf": data + b"\r\n\r\n"}))
    stored = text(home, account["run"], "RePEc:aaa:wpaper:1")
    assert stored.startswith(b"Template-Type: ReDIF-Paper 1.0\nAuthor-Name")
    assert "Title: Café\n# note\n\nAbstract: They tie\n the room".encode() in stored
    assert stored.endswith(b"Handle: RePEc:aaa:wpaper:1\n")
    version = versions(home, "tobi")["RePEc:aaa:wpaper:1"]
    assert version.key == key(account["run"], "RePEc:aaa:wpaper:1")
    assert version.sha256 == hashlib.sha256(stored).hexdigest()
    assert (version.bytes, version.place, version.encoding) == (len(stored), 6, "windows-1252")
    (own,) = template.read_templates(io.BytesIO(stored))
    assert version.text_sha256 == own.sha256
    raw = versions(home, "redif")["RePEc-file:aaa/wpaper/p.rdf"]
    assert content.read_version(store_of(home), raw) == data + b"\r\n\r\n"
    assert list(store_of(home).keys("obi/")) == [
        key_.pack(str(raw.pack)),
        *(key_.run(account["run"]) + name for name in sorted(MEMBERS)),
    ]


def test_file_blocks_become_refipos_with_the_ids_of_files(home: Home, root: Path) -> None:
    block = (
        b"File-URL: HTTP://Example.org:80/a b.pdf\nFile-Restriction: Members\nFile-URL: no url\n"
    )
    data = paper(1).replace(b"Creation-Date", block + b"Creation-Date")
    ingested(home, tree(root, {**archive(), "aaa/wpaper/p.rdf": data}))
    found = [r for r in rows(home) if isinstance(r, Refipo)]
    assert [(r.position, r.url, r.id, r.format, r.restriction) for r in found] == [
        (0, "http://example.org/rugs.pdf", "http://example.org/rugs.pdf", "application/pdf", None),
        (1, "HTTP://Example.org:80/a b.pdf", "http://example.org/ab.pdf", None, "Members"),
        (2, "no url", None, None, None),
    ]
    assert faults(home)["bad-file-url"] == 1


def test_a_document_has_what_its_series_and_archive_say(home: Home, root: Path) -> None:
    files = archive()
    files["aaa/aaaarch.rdf"] += RESTRICTED
    files["aaa/aaaseri.rdf"] += b"Restriction: Campus only\n\n" + SERIES.replace(
        b"wpaper", b"journl"
    ).replace(b"Working Papers", b"Journal of Rugs")
    article = paper(2, series="journl").replace(b"ReDIF-Paper", b"ReDIF-Article")
    files["aaa/wpaper/p.rdf"] = paper(1) + article + PERSON + b"\n" + paper(3, series="nowhere")
    account = ingested(home, tree(root, files))
    found = documents(home)
    one = found["RePEc:aaa:wpaper:1"]
    assert one["sets"] == ["RePEc:aaa:wpaper", "type:paper"]
    document = one["document"]
    assert document["fields"]["title"] == ["On Rugs"]
    assert {name: document[name] for name in document if name not in ("fields", "text")} == {
        "handle": "RePEc:aaa:wpaper:1",
        "handle_written": "RePEc:aaa:wpaper:1",
        "type": "ReDIF-Paper 1.0",
        "type_written": "ReDIF-Paper 1.0",
        "valid": True,
        "tist": account["run"],
        "archive": "RePEc:aaa",
        "series": "RePEc:aaa:wpaper",
        "source": "aaa/wpaper/p.rdf",
        "restriction": ["Campus only", "Members only"],
        "journal": None,
        "series_name": "Working Papers",
        "provider": ["Department of Rugs"],
    }
    assert found["RePEc:aaa:journl:2"]["document"]["journal"] == "Journal of Rugs"
    assert found["RePEc:aaa:wpaper"]["document"]["restriction"] == ["Members only"]
    assert found["RePEc:aaa"]["document"]["restriction"] == []
    assert found["RePEc:aaa"]["sets"] == ["RePEc:aaa", "type:archive"]
    person = found["RePEc:per:1942-12-04:JEFFREY_LEBOWSKI"]
    assert person["sets"] == ["RePEc:per", "type:person"]
    strange = found["RePEc:aaa:nowhere:3"]  # seven letters
    assert strange["sets"] == ["RePEc:aaa", "type:paper"]
    assert strange["document"]["restriction"] == ["Members only"]
    # A series that is not read again is taken from the store.
    ingested(home, tree(root, {"aaa/wpaper/p.rdf": paper(1, "On Rags")}))
    again = documents(home)["RePEc:aaa:wpaper:1"]["document"]
    assert (again["series_name"], again["provider"]) == ("Working Papers", ["Department of Rugs"])


def test_what_xml_forbids_is_in_no_document_but_in_the_store(home: Home, root: Path) -> None:
    data = paper(1, "On\x01 Rugs\x1f")
    account = ingested(home, tree(root, {**archive(), "aaa/wpaper/p.rdf": data}))
    document = documents(home)["RePEc:aaa:wpaper:1"]["document"]
    assert document["fields"]["title"] == ["On Rugs"]
    assert "Title: On Rugs\n" in document["text"]
    assert b"Title: On\x01 Rugs\x1f\n" in text(home, account["run"], "RePEc:aaa:wpaper:1")


def test_of_templates_with_one_handle_that_in_its_own_folder_counts_then_the_first(
    home: Home, root: Path
) -> None:
    winners = []
    held = archive()
    for number, (winner, *names) in enumerate(
        (
            ("aaa/wpaper/p.rdf", "aaa/aaaseri.rdf", "aaa/wpaper/p.rdf"),
            ("aaa/wpaper/p.rdf", "aaa/abooks/p.rdf", "aaa/wpaper/p.rdf"),
            ("aaa/abooks/p.rdf", "aaa/zbooks/p.rdf", "aaa/abooks/p.rdf"),
            ("aaa/zbooks/p.rdf", "aab/wpaper/p.rdf", "aaa/zbooks/p.rdf"),
            ("aaa/WPAPER/q.rdf", "aaa/wpaper/p.rdf", "aaa/WPAPER/q.rdf"),
        )
    ):
        winners.append(winner)
        for name in names:
            held[name] = held.get(name, b"") + paper(number, f"In {name}")
    two = held["aaa/wpaper/two.rdf"] = paper(5, "First") + paper(5, "Second")
    account = ingested(home, tree(root, held))
    assert account["duplicates"] == faults(home)["duplicate-handle"] == 6
    found = documents(home)
    assert [
        found[f"RePEc:aaa:wpaper:{number}"]["document"]["source"] for number in range(5)
    ] == winners
    # Of two in one file the first counts.
    assert found["RePEc:aaa:wpaper:5"]["document"]["fields"]["title"] == ["First"]
    (told,) = [r for r in rows(home) if r.row == "fault" and r.source == "aaa/wpaper/two.rdf"]
    assert told.place == two.index(b"Template", 1)
    assert told.detail == "RePEc:aaa:wpaper:5 is also in aaa/wpaper/two.rdf, line 1"


@pytest.mark.parametrize("name", ["RePEc", "mirror", "deep/er/RePEc", "aaa"])
def test_a_file_has_the_same_id_wherever_the_tree_lies(
    name: str, home: Home, tmp_path: Path
) -> None:
    files = {**archive(), "aaa/wpaper/p.rdf": paper(1)}
    if name == "aaa":
        files = {path.removeprefix("aaa/"): data for path, data in files.items()}
    source = tree(tmp_path / name, files)
    ingested(home, source if name != "deep/er/RePEc" else tmp_path / "deep")
    assert sorted(versions(home, "redif")) == [
        "RePEc-file:aaa/aaaarch.rdf",
        "RePEc-file:aaa/aaaseri.rdf",
        "RePEc-file:aaa/wpaper/p.rdf",
    ]


def test_a_tarball_is_the_tree_in_it_and_the_last_member_of_a_name_counts(
    home: Home, root: Path, tmp_path: Path
) -> None:
    files = {**archive(), "aaa/p.rdf": papers(3)}
    assert counts(ingested(home, tree(root, files))) == (5, 0, 0, 0, 0)
    members = [(f"./RePEc/{name}", data) for name, data in files.items()]
    again = ingested(home, tarball(tmp_path / "x.tgz", members))
    assert (counts(again), again["objects"]) == ((0, 0, 0, 0, 5), 0)
    members += [("./RePEc/aaa/p.rdf", papers(3, title="New"))]
    account = ingested(home, tarball(tmp_path / "x.tar", members, ""))
    assert account["handles"] == 5
    assert documents(home)["RePEc:aaa:wpaper:1"]["document"]["fields"]["title"] == ["New"]
    assert faults(home)["repeated-member"] == 1
    other = tarball(tmp_path / "x_2025-01-05.tar.gz", [("readme", b"x")])
    named = home("ingest", other)
    assert (named.code, "x_2025-01-05.tar.gz: not-an-archive" in named.out) == (1, True)
    assert "is not a tarball with .rdf or .redif files" in one_line(home("ingest", "-f", other).err)


def test_no_source_is_the_configured_folder(home: Home) -> None:
    assert "name a SOURCE" in one_line(home("ingest").err)
    config = home.config.read_text()
    home.config.write_text(config.replace('# directory = ""', 'directory = "RePEc"'))
    tree(home.folder / "RePEc", archive())
    assert counts(ingested(home)) == (2, 0, 0, 0, 0)


def test_a_folder_with_both_goes_both_ways(home: Home, tmp_path: Path) -> None:
    both = tree(tmp_path / "both", {**archive(), "COPYRIGHT": b"free"})
    alone = home("ingest", "--json", both)
    assert set(alone.json) == {"redif"}
    warc(both / "crawl.warc.gz", PAGES)
    result = home("ingest", "--json", both, warc(tmp_path / "other.warc.gz", PAGES))
    assert result.code == 0, result.err
    assert [counts(one) for one in result.json["redif"]] == [(0, 0, 0, 0, 2)]
    assert [Path(one["path"]).name for one in result.json["sources"]] == [
        "COPYRIGHT",
        "crawl.warc.gz",
        "other.warc.gz",
    ]
    told = home("ingest", both, "--again")
    assert "0 appearances" in told.out
    assert "captures from 2 files, ready to publish" in told.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-f", "{plain}"], "has no date in its name"),
        (
            ["-f", "{dated}", "-f", "{dated}.gz", "--tist", "2025-01-05"],
            "expects either one TARBALL",
        ),
        (["-f", "{dated}", "{tree}", "--tist", "2025-01-05"], "or SOURCEs of ReDIF"),
        (["-f", "{dated}", "-f", "{dated}.gz"], "have the same time"),
        (["-f", "{dated}", "--tist", "soon"], "--tist soon: expected a date"),
        (["-f", "{dated}", "--tist", "3000-01-01"], "is in the future"),
        (["-f", "nowhere_2025-01-05.tar"], "no such file"),
        (["{tree}", "--collection", "x"], "ReDIF has series"),
        (["--accept-loss", "{tree}"], "expected an archive such as aaa"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    arguments: list[str], said: str, home: Home, root: Path, tmp_path: Path
) -> None:
    members = [(f"RePEc/{name}", data) for name, data in archive().items()]
    places = {
        "plain": tarball(tmp_path / "RePEc.tar", members, ""),
        "dated": tarball(tmp_path / "RePEc_2025-01-05.tar", members, ""),
        "tree": tree(root, archive()),
    }
    tarball(tmp_path / "RePEc_2025-01-05.tar.gz", members)
    result = home("ingest", *(argument.format(**places) for argument in arguments))
    assert result.code == 2
    assert said in one_line(result.err)
    assert set(store_of(home).keys("")) == {layout.IDENTITY, layout.POINTER, layout.WITNESS}


def test_a_date_before_the_last_run_is_refused(home: Home, tmp_path: Path) -> None:
    members = [(f"RePEc/{name}", data) for name, data in archive().items()]
    last = tarball(tmp_path / "RePEc_2025-01-05.tar", members, "")
    ingested(home, "-f", last)
    assert home("ingest", "--json", "-f", last).json["redif"] == []
    older = tarball(tmp_path / "RePEc_2025-01-04.tar", members, "")
    refused = home("ingest", "-f", older)
    assert refused.code == 2
    assert "into a new store, in the order of their dates" in one_line(refused.err)


def test_strict_tells_of_faults_by_its_status(home: Home, root: Path) -> None:
    good = tree(root, archive())
    assert home("ingest", "--strict", good).code == 0
    bad = tree(root, {**archive(), "aaa/x.rdf": b"<html>"})
    result = home("ingest", "--strict", bad)
    assert result.code == 1
    assert "1 html: the file is a page of HTML" in result.out
    assert home("ingest", "--strict", bad).code == 0  # it is not told of again


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def interrupted_at(monkeypatch: pytest.MonkeyPatch, home: Home, step: str, source: Path) -> None:
    """Have an ingest interrupted where its run calls `step`."""
    with monkeypatch.context() as patch:
        patch.setattr(runs.ObiRun, step, interrupt)
        result = home("ingest", "--jobs", "1", source)
    assert result.code == 130
    assert one_line(result.err) == "sheaf: interrupted; run the command again to finish its work"


@pytest.mark.parametrize("changed", [False, True], ids=["same", "changed"])
@pytest.mark.parametrize("step", ["turn", "put_pack", "commit_files"])
def test_an_ingest_that_was_interrupted_goes_on_as_the_same_run(
    step: str, changed: bool, home: Home, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its sources changed meanwhile, the run is abandoned.

    What is there now was not there at the time of the run, whatever that had written.
    """
    source = tree(root, {**archive(), "aaa/wpaper/p.rdf": papers(5)})
    interrupted_at(monkeypatch, home, step, source)
    (tist,) = standing(store_of(home))
    assert history(store_of(home)) == ()
    if changed:
        tree(root, {**archive(), "aaa/wpaper/p.rdf": papers(6, title="On Rags")})
    account = ingested(home, source)
    assert counts(account) == (7 + changed, 0, 0, 0, 0)
    assert (account["run"] > tist) == changed
    assert [*standing(store_of(home))] == [*dict.fromkeys((tist, account["run"]))]
    assert [run.tist for run in history(store_of(home))] == [account["run"]]
    assert not list((home.folder / "store" / ".tmp").glob("ingest-*"))


def test_a_replay_that_lacked_its_commit_alone_is_done_by_the_next(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [(f"RePEc/{name}", data) for name, data in archive().items()]
    path = tarball(tmp_path / "RePEc_2025-01-05.tar", members, "")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "commit_run", interrupt)
        assert home("ingest", "-f", path).code == 130
    assert history(store_of(home)) == ()
    result = home("ingest", "-f", path, "--json")
    assert (result.code, result.json) == (0, {"redif": []})
    assert [run.tist for run in history(store_of(home))] == [1736035200]
    assert len([r for r in rows(home) if r.row == "incidence"]) == 2


def test_large_files_and_many_segments_give_the_same(
    home: Home, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {**archive(), "aaa/wpaper/a.rdf": papers(9), "aaa/wpaper/b.rdf": paper(10)}
    source = tree(root, files)
    whole = ingested(home, source, "--tist", "2025-01-05")
    other = Home(home.folder)
    monkeypatch.setattr(spool, "SEGMENT", 600)
    monkeypatch.setattr(spool, "ALONE", 700)
    monkeypatch.setattr(redif, "_MEMORY", 200)
    more = ("--store", home.folder / "other", "--tist", "2025-01-05")
    result = other("ingest", "--json", "--jobs", "2", source, *more)
    assert result.code == 0, result.err
    (account,) = result.json["redif"]
    assert counts(account) == counts(whole)
    folders = [home.folder / name for name in ("store", "other")]
    logs, texts = [], []
    for store in map(FolderStore, folders):
        (run,) = runs.history(store)
        logged, told = log.read_rows(store, run), logged_documents(store, run)
        versions_ = [row for row in log.read_rows(store, run) if isinstance(row, Version)]
        texts.append({row.key: content.read_version(store, row) for row in versions_})
        packed = {"pack": None, "start": None}
        logs.append([replace(r, **packed) if isinstance(r, Version) else r for r in logged])
        logs[-1] += told
    assert logs[0] == logs[1]
    assert texts[0] == texts[1]


def test_a_bucket_gets_the_same_objects(
    home: Home, root: Path, make_bucket: Callable[..., Bucket], monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = make_bucket()
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home.folder / "cache"))
    source = tree(root, {**archive(), "aaa/wpaper/p.rdf": papers(5)})
    ingested(home, source, "--tist", "2025-01-05")
    more = ("--store", bucket.uri, "--tist", "2025-01-05")
    result = home("ingest", "--json", source, *more)
    assert result.code == 0, result.err
    own = list(store_of(home).keys("obi/"))
    assert list(bucket.keys("obi/")) == own
    for one in own:
        if not one.endswith((".json",)):
            assert bucket.read(one) == store_of(home).read(one)
    commit = next(one for one in own if one.endswith("commit.json"))
    assert json.loads(bucket.read(commit))["log"] == json.loads(store_of(home).read(commit))["log"]


def test_a_handle_that_no_file_can_be_called_by_keeps_nothing_else_out(tmp_path: Path) -> None:
    """The store lies in a folder that is named as a column of Hive's."""
    (tmp_path / "source=3").mkdir()
    home = make_home(tmp_path / "source=3" / "home")
    bad = b"".join(paper(9).replace(b"RePEc:aaa:wpaper:9", dots) for dots in (b".", b".."))
    source = tree(tmp_path / "RePEc", {**archive(), "aaa/wpaper/a.rdf": papers(2) + bad})
    assert counts(ingested(home, source)) == (6, 0, 0, 0, 0)
    assert counts(ingested(home, source)) == (0, 0, 0, 0, 6)


def test_the_operator_names_the_encoding_of_an_archive(home: Home, root: Path) -> None:
    title = "Российская Экономическая Школа"
    coded = title.encode("koi8-r")
    mixed = paper(2, title).replace(b"They tie", coded)
    files = {**archive(), "aaa/wpaper/p.rdf": paper(1).replace(b"On Rugs", coded) + mixed}
    ingested(home, tree(root, files))
    assert faults(home)["other-encoding"] == 2
    with home.config.open("a") as config:
        config.write('[redif.encodings]\naaa = "koi8-r"\n')
    again = ingested(home, root)
    assert counts(again) == (0, 0, 2, 0, 2)
    for number in (1, 2):
        assert title.encode() in text(home, again["run"], f"RePEc:aaa:wpaper:{number}")
    encodings = {row.encoding for row in versions(home, "tobi").values()}
    assert encodings == {"koi8-r", "mixed-koi8-r"}
    home.config.write_text(home.config.read_text().replace("koi8-r", "utf-16"))
    assert "redif.encodings" in one_line(home("ingest", root).err)


def test_tarballs_in_a_folder_are_replayed_at_their_dates(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    for day, many in (("2025-01-07", 3), ("2025-01-05", 2)):
        files = {**archive(), "aaa/wpaper/p.rdf": papers(many)}
        tarball(folder / f"RePEc_{day}.tar.gz", files.items())
    warc(folder / "a.warc.gz", PAGES)
    done = home("ingest", "--json", folder).json
    assert [counts(one) for one in done["redif"]] == [(4, 0, 0, 0, 0), (1, 0, 0, 0, 4)]
    assert "captures" in str(done)
    assert home("ingest", folder).err.count("already ingested, as of") == 2
    tarball(folder / "other.tgz", files.items())
    assert "other.tgz has no date in its name" in one_line(home("ingest", folder).err)
