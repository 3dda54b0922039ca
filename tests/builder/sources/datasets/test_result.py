"""Results as the proposal has them."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from builder.sources.datasets.item import (
    ArchiveStrategyResult,
    Cdx,
    DatasetResource,
    Description,
    IngestOutcome,
    IngestRequest,
    Terminal,
)
from builder.sources.datasets.manifest_file import compute_digests, meta
from builder.sources.datasets.result import (
    describe,
    file_json,
    file_result,
    result,
    results,
    show_size,
)
from builder.sources.datasets.results import outcome_line, parse_outcome
from builder.sources.datasets.status import FILE, STATUSES, may_pass
from tests.builder.sources.datasets.outcomes import archived, failed, file, item
from tests.builder.sources.datasets.test_formats import DESCRIPTIONS

REQUEST = IngestRequest(
    "10.5/1", given={"base_url": "10.5/1", "link_source": "doi", "fatcat": {"a": 1}}
)
PAGE = DatasetResource(
    url="https://data.example.org/1",
    hops=("https://doi.org/10.5/1",),
    doi="10.5/1",
    status=200,
    media_type="text/html",
    body=b"a,b\n",
    html_biblio={"title": "Hives"},
    at="20261122095959",
)
PAGE_DIGESTS = compute_digests([b"a,b\n"]).every()
TERMINAL = Terminal(
    terminal_url="https://data.example.org/files/a.csv",
    terminal_dt="20261122100000",
    terminal_status_code=200,
    terminal_sha1hex=f"{5:040x}",
)
CDX = Cdx(
    surt="org,example,data)/files/a.csv",
    datetime="20261122100000",
    url=TERMINAL.terminal_url,
    mimetype="text/csv",
    status_code=200,
    sha1b32="A" * 32,
    warc_csize=300,
    warc_offset=200,
    warc_path="warcs/a.warc.gz",
)
_COMMON = """
hit status request hops terminal file_meta cdx revisit_cdx html_biblio detail code retryable updated
"""
_OF_ITEM = """
manifest platform_name platform_domain platform_id platform_base_url platform_version until
ingest_strategy strategy_reason file_count total_size
"""
COMMON, OF_ITEM = {*_COMMON.split()}, {*_OF_ITEM.split()}


def outcome(
    strategy: str = "web-file", status: str = "success-file", **more: object
) -> IngestOutcome:
    of = item("a.csv", archiveorg_item_name="an-item")
    kept = replace(archived(of, strategy=strategy), file_terminal=TERMINAL, file_cdx=CDX)
    given = {"item": of, "archived": kept, "strategy": strategy, "reason": "1 file", **more}
    return failed(status, request=REQUEST, resource=PAGE, **given)


def test_a_result_has_the_fields_of_the_proposal() -> None:
    found = result(outcome())
    assert found.keys() == COMMON | OF_ITEM | {"fileset_file"}
    assert found["request"] == {**REQUEST.given, "ingest_type": "dataset"}
    assert found["terminal"] == {
        "terminal_url": "https://data.example.org/1",
        "terminal_dt": "20261122095959",
        "terminal_status_code": 200,
        "terminal_sha1hex": PAGE_DIGESTS["sha1"],
    }
    assert found["file_meta"] == {
        "size_bytes": 4,
        **{f"{name}hex": PAGE_DIGESTS[name] for name in ("md5", "sha1", "sha256")},
        "mimetype": "text/html",
    }
    assert (found["file_count"], found["total_size"]) == (1, 5)
    assert found["fileset_file"]["cdx"]["warc_path"] == CDX.warc_path
    assert found["hops"] == ["https://doi.org/10.5/1", "https://data.example.org/1"]
    assert json.loads(json.dumps(found)) == found


def test_a_dataset_of_one_file_has_a_second_result_of_its_file() -> None:
    first, second = results(outcome())
    assert second["request"] == {**first["request"], "ingest_type": "dataset-file"}
    assert (second["hit"], second["status"]) == (True, "success")
    assert second["file_meta"]["sha1hex"] == second["terminal"]["terminal_sha1hex"]
    assert second["terminal"]["terminal_url"] == TERMINAL.terminal_url
    assert second["cdx"]["warc_offset"] == CDX.warc_offset
    for status in ("success-existing", "success-partial", "mismatch-md5"):
        assert file_result(outcome(status=status)) is None
    assert len(results(outcome("s3-fileset", "success"))) == 1


def test_a_bundle_is_told_where_there_is_one() -> None:
    kept = ArchiveStrategyResult(
        ingest_strategy="archiveorg-fileset-bundled",
        status="success",
        manifest=(file("a.csv"),),
        bundle_file_meta=meta(file("bundle.zip")),
        bundle_archiveorg_path="an-item/bundle.zip",
    )
    found = result(outcome("archiveorg-fileset-bundled", "success", archived=kept))
    assert found["fileset_bundle"] == {
        "file_meta": found["fileset_bundle"]["file_meta"],
        "terminal": None,
        "cdx": None,
        "revisit_cdx": None,
        "archiveorg_bundle_path": "an-item/bundle.zip",
    }
    assert found["archiveorg_item_name"] == "an-item"
    assert "fileset_file" not in found


def test_what_failed_tells_no_archived_bytes() -> None:
    found = result(outcome(status="mismatch-md5"))
    assert found.keys() == COMMON | OF_ITEM
    assert (found["hit"], found["retryable"]) == (False, False)
    assert result(outcome(status="stalled"))["retryable"]


def test_what_is_retried_says_so() -> None:
    """A partial dataset is repeated by `--retry` for each file that failed, and by nothing else."""
    for state, retried in (("file-404", True), ("mismatch-md5", True), ("withheld", False)):
        files = (replace(file("a.csv"), status="verified"), replace(file("b.csv"), status=state))
        partial = replace(archived(item("a.csv"), strategy="s3-fileset"), manifest=files)
        found = result(outcome("s3-fileset", "success-partial", archived=partial))
        assert (found["retryable"], may_pass("success-partial", [state])) == (retried, retried)


def test_without_a_platform_there_are_the_common_fields_alone() -> None:
    found = result(failed("no-platform-match", request=REQUEST, detail="none is known"))
    assert found.keys() == COMMON | {"platform_name"}
    assert (found["terminal"], found["file_meta"], found["hops"]) == (None, None, [])
    unvisited = replace(PAGE, status=None, body=None, at=None, html_biblio={})
    found = result(failed("platform-404", request=REQUEST, resource=unvisited, platform="zenodo"))
    assert found["platform_name"] == "zenodo"
    assert found["terminal"]["terminal_url"] == PAGE.url
    assert (found["terminal"]["terminal_sha1hex"], found["html_biblio"]) == (None, None)


def test_a_detail_is_cut_and_a_size_that_is_not_known_has_no_total() -> None:
    assert len(result(outcome(detail="x" * 5000))["detail"]) == 1600
    of = item(manifest=(file("a.csv"), replace(file("b.csv"), size=None)))
    assert result(outcome(item=of, archived=None, status="pending"))["total_size"] is None


def test_a_file_tells_all_that_is_proposed_and_of_the_rest_what_there_is() -> None:
    found = file_json(file("a.csv"))
    proposed = "path size md5 sha1 sha256 mimetype extra status platform_url terminal_url"
    assert list(found) == [*proposed.split(), "terminal_dt"]
    more = {"sha512": "ab", "key": "filesets/a", "offset": 0}
    assert file_json(file("a.csv", **more)).keys() - found.keys() == more.keys()


def test_every_status_of_a_result_can_be_told() -> None:
    for name, row in STATUSES.items():
        if row.scope != FILE:
            assert result(outcome(status=name))["hit"] == row.hit
            assert describe(outcome(status=name)).startswith(
                f"{name}  10.5/1: invenio data.example 41"
            )


def test_a_person_reads_what_came_of_it() -> None:
    assert describe(outcome()) == (
        "success-file  10.5/1: invenio data.example 41 v1.2: 1 file, 5 bytes: web-file"
    )
    bare = replace(file("b"), size=None, md5=None)
    dry = outcome(
        status="pending",
        archived=None,
        item=item(manifest=(file("a.csv"), bare, file("c", status="withheld"))),
    )
    assert describe(dry, whole=True).splitlines() == [
        "pending  10.5/1: invenio data.example 41 v1.2: "
        "2 files, at least 5 bytes, 1 withheld: web-file",
        "  Heights of <larches> & firs",
        "  web-file: 1 file",
        "  a.csv: 5 bytes, to be verified with md5",
        "  b: size unknown, no digest to verify it",
        "  c: 5 bytes, withheld",
    ]
    kept = file("a.csv", status="verified")
    partly = replace(outcome().archived, manifest=(kept, file("b", status="withheld")))
    assert describe(outcome(status="success-partial", archived=partly)) == (
        "success-partial  10.5/1: invenio data.example 41 v1.2: "
        "1 file, 5 bytes, 1 withheld: web-file"
    )
    later = item(manifest=(), until="2031-05-01")
    embargoed = outcome(item=later, archived=None, status="platform-embargoed")
    assert describe(replace(embargoed, strategy=None)) == (
        "platform-embargoed  10.5/1: invenio data.example 41 v1.2: until 2031-05-01"
    )
    request = IngestRequest("a\x1b[2Jb")
    odd = failed("bad-identifier", request=request, detail="neither", code="c")
    assert describe(odd) == "bad-identifier  a\\x1b[2Jb: (c) neither"
    assert [show_size(n) for n in (0, 1, 999, 1000, 1_500_000)] == [
        "0 bytes",
        "1 byte",
        "999 bytes",
        "1.0 kB",
        "1.5 MB",
    ]


TEXT = st.text(max_size=20)


@given(DESCRIPTIONS, TEXT, st.dictionaries(TEXT, TEXT | st.integers() | st.none(), max_size=3))
def test_the_journal_gives_an_outcome_back_as_it_was(
    description: Description, detail: str, extra: dict[str, object]
) -> None:
    of = item(
        manifest=(file("a.csv", extra=extra),),
        archiveorg_item_meta=extra,
        description=description,
    )
    told = outcome(item=of, detail=detail)
    back = parse_outcome(outcome_line(told))
    assert back == replace(told, resource=replace(told.resource, body=None))
