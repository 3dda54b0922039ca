"""The files behind URLs as WARC, read back by warcio, by its checker and by Sheaf itself."""

import hashlib
import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from builder.commands.cli import main
from builder.errors import UsageError
from builder.exports import obi_source
from builder.exports.obi_source import open_obi
from builder.exports.warc import gathered_files as warc
from builder.exports.warc.gathered_files import FetchedFile, Recorded
from functions.snapshot import instant
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Writer
from tests.builder.obi.kept import EMPTY, FIRST, FULL, Kept, class_of, fourth

pytestmark = pytest.mark.shared(2)


def exported(store: Writer, target: Path) -> Recorded:
    with open_obi(store, 1024, 2) as (runs, connection):
        gathered = obi_source.gather_runs(connection)
        found = [
            FetchedFile(run.tist, partial(obi_source.sightings, connection, run.tist))
            for run in runs
            if run.tist in gathered
        ]
        return warc.export(store, found, target, lambda n: None)


def records(path: Path) -> list[tuple[dict[str, str], bytes]]:
    with path.open("rb") as file:
        return [
            (dict(record.rec_headers.headers), record.content_stream().read())
            for record in ArchiveIterator(file, check_digests="raise")
        ]


class Arguments:
    def __init__(self, *paths: Path) -> None:
        self.inputs = [str(path) for path in paths]
        self.verbose = False


def checked(*paths: Path) -> int:
    """Return the exit status of `warcio check`."""
    return int(Checker(Arguments(*paths)).process_all() or 0)


@pytest.mark.parametrize("name", ["files.warc", "files.warc.gz"])
def test_every_version_is_a_resource_and_what_was_as_before_a_revisit(
    kept: Kept, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    assert exported(kept.store, path) == Recorded(1, 12, 2, 0)
    (info, _), *found = records(path)
    assert (info["WARC-Type"], info["WARC-Filename"]) == ("warcinfo", name)
    resources = {
        (h["WARC-Target-URI"], int(instant.from_text(h["WARC-Date"]).timestamp())): data
        for h, data in found
        if h["WARC-Type"] == "resource"
    }
    assert resources == {
        (identifier, tist): data
        for identifier, versions in kept.versions.items()
        if class_of(identifier) == "fobi"
        for tist, data in versions.items()
    }
    revisits = [headers for headers, _ in found if headers["WARC-Type"] == "revisit"]
    assert [h["WARC-Target-URI"] for h in revisits] == [FULL, EMPTY]
    by_id = {headers["WARC-Record-ID"]: headers for headers, _ in found}
    assert len(by_id) == 14
    for headers in revisits:
        original = by_id[headers["WARC-Refers-To"]]
        assert original["WARC-Type"] == "resource"
        assert headers["WARC-Date"] == "2012-11-09T17:20:30Z"
        assert headers["WARC-Refers-To-Date"] == original["WARC-Date"] == "2012-11-09T17:18:50Z"
        assert headers["WARC-Payload-Digest"] == original["WARC-Payload-Digest"]
    assert checked(path) == 0
    with pytest.raises(UsageError, match="already exists"):
        exported(kept.store, path)
    assert checked(path) == 0  # it is as it was, and the checker finds what is altered
    if name == "files.warc":
        path.write_bytes(path.read_bytes().replace(b"%PDF-1.4 1", b"%PDF-1.4 X"))
        assert checked(path) == 1


def test_a_folder_gets_a_file_for_each_run_that_found_one(kept: Kept, tmp_path: Path) -> None:
    target = tmp_path / "warc"
    assert exported(kept.store, target) == Recorded(4, 12, 2, 0)
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    assert sorted(before) == [f"run-{FIRST + n}.warc.gz" for n in (100, 200, 300, 400)]
    fourth(kept)
    assert exported(kept.store, target) == Recorded(1, 2, 0, 4)
    after = {path.name: path.read_bytes() for path in target.iterdir()}
    assert {name: after[name] for name in before} == before
    assert checked(*target.iterdir()) == 0


def test_of_altered_bytes_no_file_is_made(kept: Kept, tmp_path: Path) -> None:
    (key, *_) = [k for k in kept.store.keys("obi/") if k.endswith("Paper%2520one.pdf")]
    path = tmp_path / "store" / key
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    with pytest.raises(DamagedStore, match="is damaged"):
        exported(kept.store, tmp_path / "files.warc.gz")
    assert not list(tmp_path.glob("*.warc.gz"))
    assert not list(tmp_path.glob(".files*"))


def test_sheaf_reads_it_back_as_captures(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    exported(kept.store, tmp_path / "files.warc.gz")
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--namespace", "archive.example.cz", "--store", "other"]) == 0
    assert main(["ingest", "--strict", "files.warc.gz"]) == 0
    assert main(["publish"]) == 0
    capsys.readouterr()
    question = (
        "SELECT url, fetch_date AS date, warc_record_type AS type, content_length AS bytes, "
        "content_digest_declared AS declared, content_mime_type AS mime, refers_to IS NOT NULL "
        "AS resolved FROM captures ORDER BY warc_record_offset"
    )
    assert main(["query", "--json", question]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for tist in kept.tists[:3]:
        when = instant.to_text(datetime.fromtimestamp(tist, UTC))
        assert [(c["url"], c["bytes"]) for c in found if c["date"] == when] == sorted(
            (identifier, len(versions[tist]))
            for identifier, versions in kept.versions.items()
            if class_of(identifier) == "fobi"
        )
    assert {c["mime"] for c in found if c["type"] == "resource"} == {"application/pdf"}
    digests = {
        "sha256:" + hashlib.sha256(data).hexdigest()
        for versions in kept.versions.values()
        for data in versions.values()
    }
    assert {c["declared"] for c in found if c["type"] == "resource"} <= digests
    revisits = [c for c in found if c["type"] == "revisit"]
    assert [c["url"] for c in revisits] == [FULL, EMPTY]
    assert all(c["resolved"] for c in revisits)


def test_the_command_writes_adds_and_says_so(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", "warc", "--store", "store", "warc"]) == 0
    assert capsys.readouterr().out == (
        f"{tmp_path}/warc: 4 WARC files written with 3 responses, 12 resources and 2 revisits; "
        "0 were there\n"
    )
    one = ["export", "warc", "--store", "store", "--json", "one.warc.gz"]
    assert main([*one, "--run", str(FIRST + 400)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {k: told[k] for k in ("files", "resources", "revisits", "there")} == {
        "files": 1,
        "resources": 0,
        "revisits": 2,
        "there": 0,
    }
    assert main(one) == 2
    assert "one.warc.gz already exists" in capsys.readouterr().err
    assert main(["export", "warc", "--store", "store", "w", "--run", str(FIRST + 500)]) == 2
    assert "run `sheaf gather`" in capsys.readouterr().err
    assert not (tmp_path / "w").exists()
