"""Entries: what is listed, deleted or left, in which sets, and with which document."""

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builder.sources.datasets import result, status
from builder.sources.datasets.entry import DELETE, LEAVE, LIST, entry
from builder.sources.datasets.results import outcome_line, parse_outcome
from functions.kinds import datasets
from functions.snapshot import item_tables
from tests.builder.sources.datasets import outcomes
from tests.builder.sources.datasets.outcomes import failed, file, item, outcome

IDENTITY = "dataset,invenio,data.example,41"


def test_a_dataset_of_several_files_is_a_fileset() -> None:
    found = entry(outcome(item("b.csv", "a/a.csv")))
    assert (found.deed, found.identity, found.kind) == (LIST, IDENTITY, "fileset")
    assert found.sets == (
        "host:data.example",
        "platform:invenio",
        "status:success",
        "strategy:s3-fileset",
    )
    told = json.loads(found.document or "")
    computed = datasets.COMPUTED
    assert [*told] == [c.name for c in datasets.COLUMNS if c.name not in computed]
    assert [one["path"] for one in told["files"]] == ["a/a.csv", "b.csv"]
    assert told["bytes"] == 11
    assert told["creators"][0]["orcid"] == "0000-0002-1825-0097"


def test_a_dataset_of_one_file_is_a_file() -> None:
    found = entry(outcome(item("a.csv")))
    assert found.kind == "file"
    assert found.identity == IDENTITY
    assert "status:success-file" in found.sets


@pytest.mark.parametrize("paths", [("a.csv",), ("a.csv", "b.csv")])
def test_what_was_archived_before_gives_the_same_bytes(paths: tuple[str, ...]) -> None:
    first, again = outcome(item(*paths)), outcome(item(*paths), existing=True)
    assert again.status == "success-existing"
    one, two = entry(first), entry(replace(again, at="20271122100000"))
    assert (one.sets, one.document, one.kind) == (two.sets, two.document, two.kind)


def test_a_partial_one_is_partial_when_it_is_found_again() -> None:
    part = item("a.csv", "b.csv")
    part = replace(part, manifest=(*(part.manifest or ()), file("secret.csv", 9, "withheld")))
    first, again = entry(outcome(part)), entry(outcome(part, existing=True))
    told = json.loads(first.document or "")
    assert first.document == again.document
    assert told["status"] == "success-partial"
    assert told["withheld"] == [{"path": "secret.csv", "bytes": 9}]
    assert [one["path"] for one in told["files"]] == ["a.csv", "b.csv"]


def test_a_file_without_a_digest_of_its_platform_is_unverified() -> None:
    without = item("a.csv", "b.csv")
    files = without.manifest or ()
    without = replace(without, manifest=(replace(files[0], md5=None), files[1]))
    told = json.loads(entry(outcome(without)).document or "")
    assert [one["status"] for one in told["files"]] == ["unverified", "verified"]


@pytest.mark.parametrize("name", sorted(status.STATUSES))
def test_each_status_lists_deletes_or_leaves_as_its_row_says(name: str) -> None:
    row = status.of(name)
    found = entry(failed(name, item=item("a.csv", "b.csv")))
    if row.gone:
        assert found.deed == DELETE
    elif row.lists and not row.hit:
        assert (found.deed, found.kind) == (LIST, "fileset")
        assert json.loads(found.document or "")["files"] == []
        assert f"status:{name}" in found.sets
        assert not any(one.startswith("strategy:") for one in found.sets)
    else:  # a hit without a file that was kept is none
        assert (found.deed, found.document) == (LEAVE, None)
    assert entry(failed(name)).deed == (DELETE if row.gone else LEAVE)


def test_without_an_id_nothing_is_listed() -> None:
    found = entry(outcome(item("a.csv", platform_id=None)))
    assert (found.deed, found.identity) == (LEAVE, None)


def test_the_row_has_the_columns_of_the_proposal() -> None:
    names = [column.name for column in item_tables.RESULT if column.name != "identifier"]
    row = dict(zip(names, entry(outcome(item("a.csv", "b.csv"))).result, strict=True))
    assert (row["hit"], row["file_count"], row["total_size"]) == (True, 2, 11)
    assert row["updated"].isoformat() == "2026-11-22T10:00:00"
    manifest = json.loads(row["manifest"])
    assert [*manifest[0]][:5] == ["path", "size", "md5", "sha1", "sha256"]
    assert "sha512" not in manifest[0]
    unknown = item("a.csv", "b.csv", manifest=(replace(file("a.csv"), size=None), file("b.csv")))
    row = dict(zip(names, entry(failed("too-many-files", item=unknown)).result, strict=True))
    assert (row["hit"], row["file_count"], row["total_size"]) == (False, 2, None)
    row = dict(zip(names, entry(failed("bad-identifier")).result, strict=True))
    assert (row["platform_name"], row["manifest"], row["file_count"]) == (None, None, None)


@example(text=" ")
@example(text="\u3000\n")
@example(text="\x1f")
@given(text=st.text(min_size=1))
def test_any_text_can_be_stored(text: str) -> None:
    told = replace(outcomes.DESCRIPTION, title=text, subjects=(text,))
    found = entry(
        outcome(item("a.csv", description=told, platform_id=text, web_base_url=text), detail=text)
    )
    title = json.loads((found.document or "").encode())["title"]
    assert (title is None) == (not text.split())  # blanks are no title
    assert not {*(title or "")} & {
        chr(code) for code in (*range(9), 11, 12, *range(14, 32), 0xFFFE)
    }
    identity = found.identity or ""
    assert identity.isascii()
    assert ":" not in identity
    assert identity.count(",") == 3


@pytest.mark.parametrize("name", ["file-404", "file-forbidden", "over-limit-stream"])
def test_a_file_that_failed_alone_is_listed_as_withheld(name: str) -> None:
    of = item("a.csv", "b.csv")
    told = outcome(of, status="success-partial")
    first, second = told.archived.manifest
    lost = replace(second, status=name, key=None, size=6)
    kept = replace(told.archived, manifest=(first, lost))
    for state in ("success-partial", "success-existing"):
        found = entry(replace(told, status=state, archived=replace(kept, status=state)))
        assert "status:success-partial" in found.sets
        document = json.loads(found.document or "")
        assert [one["path"] for one in document["files"]] == ["a.csv"]
        assert document["withheld"] == [{"path": "b.csv", "bytes": 6}]


def test_a_status_of_another_version_is_a_failure_for_good() -> None:
    """An old journal or an old table may have one that is no more, such as duplicate-path."""
    of = item(manifest=(file("a.csv", 5, "duplicate-path"),))
    told = replace(failed("duplicate-path"), item=of)
    line = outcome_line(told)
    found = entry(parse_outcome(line))
    assert (found.deed, found.document) == (LEAVE, None)
    assert "duplicate-path" in found.result
    shown = result.result(told)
    assert (shown["hit"], shown["retryable"]) == (False, False)
    assert result.describe(told, whole=True).startswith("duplicate-path")
    assert "duplicate-path" not in status.STATUSES
