"""`sheaf fileset` against the fake server: the whole way, from a URL to what is listed of it."""

import io
import json

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.builder.sources.datasets.body import digest
from tests.builder.sources.datasets.command import Command
from tests.builder.sources.datasets.deposits import (
    content,
    deposit,
    doi,
    page,
    real_deposit,
    record,
    register,
)
from tests.builder.sources.datasets.platform import STRATEGIES
from tests.builder.sources.datasets.server import status

pytestmark = pytest.mark.shared(2)

A, B = b"weight,day\n1,2\n", b"price\n3\n"


def test_a_dataset_goes_all_the_way_to_what_is_listed(command: Command) -> None:
    deposit(command.server, 11, {"a.csv": A, "data/b.csv": B})
    first, _ = command("status")
    assert "none yet: run `sheaf ingest` or `sheaf fileset`, then `sheaf publish`\n" in first
    out, err = command("fileset", doi(command.server, 11))
    assert out == (
        "success  10.5281/zenodo.11: zenodo zenodo.org 10 v11: 2 files, 23 bytes: s3-fileset\n"
    )
    assert "run `sheaf publish`" in err
    assert "none yet: run `sheaf publish`\n" in command("status")[0]
    command("publish")
    assert "datasets   1, deleted ones included; 2 files archived\n" in command("status")[0]
    out, _ = command("query", "SELECT path, bytes, status FROM files ORDER BY path")
    assert out.splitlines() == ["path,bytes,status", "a.csv,15,verified", "data/b.csv,8,verified"]
    out, _ = command("query", "SELECT kind, title FROM filesets")
    assert out.splitlines()[1:] == ["fileset,Hives of the year 11"]
    command("verify")


def test_scenarios_1_and_2_real_files_are_listed_and_none_is_fetched_again(
    command: Command,
) -> None:
    """With made answers, and in each way of keeping files, test_states plays them."""
    name, bodies = real_deposit(command.server)
    (first,) = command.results(name)
    command("publish")
    out, _ = command("query", "--json", "SELECT * FROM files ORDER BY path")
    listed = [json.loads(line) for line in out.splitlines()]
    assert {row["path"]: row["sha256"] for row in listed} == {
        path: digest("sha256", body) for path, body in bodies.items()
    }
    command("verify")
    command.server.forget()
    (again,) = command.results(name)
    assert (first["status"], again["status"]) == ("success", "success-existing")
    asked = command.server.asked("https://zenodo.org/api/")
    assert not [one for one in asked if "/files/" in one.url]
    out, _ = command("publish", "--json")
    assert json.loads(out)["changed"] == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("strategy", ["s3", "web"])
def test_what_the_platform_sent_is_kept_verbatim_with_its_source(
    command: Command, strategy: str
) -> None:
    command.configure(fileset__strategy=f'"{strategy}"')
    deposit(command.server, 11, {"a.csv": A, "b.csv": B})
    command.results(doi(command.server, 11))
    base = next(k for k in command.store.keys("filesets/") if k.endswith("/fileset.json"))
    told = json.loads(command.store.read(base))
    api = "https://zenodo.org/api/records/11"
    assert told["described"] == {
        "title": {"value": "Hives of the year 11", "source": api},
        "creators": [{"value": "Medová, Jana", "source": api}],
        "licences": [{"value": "CC-BY-4.0", "source": api}],
        "doi": {"value": "10.5281/zenodo.11", "source": api},
        "version": {"value": "11", "source": api},
        "edition": {"value": "1", "source": api},
    }
    (kept,) = [one for one in told["objects"] if "/platform-" in one["key"]]
    data = command.store.read(kept["key"])
    (body,) = [
        answer.content_stream().read()
        for answer in ArchiveIterator(io.BytesIO(data), check_digests="raise")
        if (answer.rec_type, answer.rec_headers["WARC-Target-URI"]) == ("response", api)
    ]
    assert json.loads(body) == record(11, {"a.csv": A, "b.csv": B})
    command("publish")
    command("verify")
    (again,) = command.results(doi(command.server, 11))
    assert again["status"] == "success-existing"


ODD_NAMES = {
    "aux.csv": "%61ux.csv",
    "a\tb": "a%09b",
    "m\u00e9d": "m\u00e9d",
    "me\u0301d": "me%CC%81d",
    "b.csv": "b.csv",
    "../b.csv": None,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_odd_names_are_kept_and_one_that_leads_elsewhere_fails_alone(
    command: Command, strategy: str
) -> None:
    command.configure(fileset__strategy=STRATEGIES[strategy])
    files = {raw: ascii(raw).encode() for raw in ODD_NAMES}
    (found,) = command.results(deposit(command.server, 11, files))
    assert (found["status"], found["file_count"]) == ("success-partial", 6)
    told = {file["extra"].get("raw_path", file["path"]): file for file in found["manifest"]}
    assert {raw: told[raw]["path"] for raw in files if ODD_NAMES[raw]} == {
        raw: path for raw, path in ODD_NAMES.items() if path
    }
    assert told["../b.csv"]["status"] == "unsafe-path"
    command("publish")
    command("verify")
    out = command.folder / "out"
    command("restore", "doi:10.5281/zenodo.11", str(out / "theirs"))
    command("restore", "doi:10.5281/zenodo.11", str(out / "safe"), "--safe-names")
    for folder, paths in (("theirs", {n: n for n in ODD_NAMES}), ("safe", ODD_NAMES)):
        assert {path.name: path.read_bytes() for path in (out / folder).iterdir()} == {
            paths[raw]: files[raw] for raw, path in ODD_NAMES.items() if path
        }
    (again,) = command.results(deposit(command.server, 11, files))
    assert again["status"] == "success-partial"


def test_a_result_for_each_request_and_one_more_for_a_dataset_of_one_file(
    command: Command,
) -> None:
    one = deposit(command.server, 11, {"a.csv": A})
    first, second, third = sorted(
        command.results(one, "10.5281/zenodo.99", code=0),
        key=lambda found: (found["request"]["base_url"], found["request"]["ingest_type"]),
    )
    assert first["status"] == "platform-404"
    assert (second["status"], second["fileset_file"]["file_meta"]["size_bytes"]) == (
        "success-file",
        len(A),
    )
    assert third["request"] == {"base_url": one, "ingest_type": "dataset-file"}
    assert third["file_meta"] == second["fileset_file"]["file_meta"]


def test_lines_in_lines_out(command: Command) -> None:
    one = deposit(command.server, 11, {"a.csv": A, "b.csv": B})
    lines = [
        json.dumps({"base_url": one, "ingest_type": "dataset", "link_source": "doi"}),
        "",
        "zenodo 11",
        json.dumps({"base_url": one, "ingest_type": "pdf"}),
    ]
    found = {r["status"]: r for r in command.results("-", lines="\n".join(lines))}
    assert found.keys() == {"success", "bad-identifier", "not-implemented"}
    assert found["success"]["request"]["link_source"] == "doi"
    assert found["bad-identifier"]["request"]["base_url"].startswith("line 3: not JSON")
    assert "line 3: not JSON" in found["bad-identifier"]["detail"]
    again = command.results(lines=lines[0])  # stdin is no terminal
    assert [r["status"] for r in again] == ["success-existing"]


def test_a_dry_run_shows_all_and_keeps_nothing(command: Command) -> None:
    url = deposit(command.server, 11, {"a.csv": A, "b.csv": B})
    out, _ = command("fileset", "--dry-run", url)
    assert out.splitlines() == [
        f"pending  {url}: zenodo zenodo.org 10 v11: 2 files, 23 bytes: s3-fileset: dry run: no "
        "file was fetched",
        "  Hives of the year 11",
        "  s3-fileset: 2 files with 23 bytes, the largest has 15; fileset.strategy is s3",
        "  a.csv: 15 bytes, to be verified with md5",
        "  b.csv: 8 bytes, to be verified with md5",
    ]
    assert not command.server.asked(content(11, ""))
    assert not list(command.store.keys(""))
    (told,) = command.results("--dry-run", url)
    assert (told["status"], told["hit"], told["ingest_strategy"]) == (
        "pending",
        False,
        "s3-fileset",
    )


def test_strict_exits_with_1_where_a_dataset_is_not_archived(command: Command) -> None:
    good = deposit(command.server, 11, {"a.csv": A})
    command("fileset", "--strict", good)
    _, err = command("fileset", "--strict", good, "10.5281/zenodo.99", code=1)
    assert "2 results: " in err
    assert "1 platform-404" in err


def test_what_cannot_be_meant_is_refused(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal())
    for arguments, problem in (
        ((), "nothing to do"),
        (("-", "-"), "-: stdin can be given only once"),
        (("--follow", "10.5/1"), "--follow requires --queue"),
        (
            ("--queue", "https://sqs.a.amazonaws.com/1/q", "--dry-run"),
            "--queue cannot be combined with --dry-run",
        ),
    ):
        _, err = command("fileset", *arguments, code=2)
        assert problem in err
        assert len(err.splitlines()) == 1


def test_nobody_is_asked_who_could_not_tell_by_whom(command: Command) -> None:
    command.configure(repository__admin_emails='["admin@example.org"]')
    _, err = command("fileset", "10.5281/zenodo.11", code=2)
    assert "repository.admin_emails is still" in err
    assert not command.server.log


def test_a_plain_list_of_names_is_read_from_stdin(command: Command) -> None:
    deposit(command.server, 11, {"a.csv": A})
    deposit(command.server, 12, {"b.csv": B})
    names = f"\ufeff{doi(command.server, 11)}\nDOI: {doi(command.server, 12)}\n\n{page(11)}\nbee\n"
    found = command.results(lines=names)
    results = [r["status"] for r in found if r["request"]["ingest_type"] == "dataset"]
    assert sorted(results) == sorted(["success-file"] * 2 + ["success-existing", "bad-identifier"])


def test_the_doi_by_which_a_dataset_was_archived_restores_it(command: Command) -> None:
    deposit(command.server, 11, {"a.csv": A})
    base = "10.5072/all-versions"
    register(command.server, base, page(11))
    command.results(f"https://doi.org/{base}")
    command("publish")
    command("restore", f"doi:{base}", str(command.folder / "out"))
    assert (command.folder / "out" / "a.csv").read_bytes() == A


def test_nothing_to_restore_is_an_error(command: Command) -> None:
    deposit(command.server, 11, {"a.csv": A}, access_right="closed")
    command.results(doi(command.server, 11))
    command("publish")
    _, err = command("restore", "10.5281/zenodo.11", str(command.folder / "out"), code=2)
    assert "is platform-restricted: no file of it is archived" in err


def test_what_is_due_is_asked_for_again_on_its_day(command: Command) -> None:
    embargoed = deposit(
        command.server, 11, {"a.csv": A}, access_right="embargoed", embargo_date="2026-01-01"
    )
    later = deposit(
        command.server, 21, {"a.csv": A}, access_right="embargoed", embargo_date="2999-01-01"
    )
    broken = deposit(command.server, 31, {"a.csv": A}, answers={"a.csv": status(503)})
    deposit(command.server, 41, {"a.csv": A}, access_right="restricted")
    statuses = {r["status"] for r in command.results(embargoed, later, broken)}
    assert "platform-embargoed" in statuses
    _, err = command("fileset", "--due")
    assert "1 dataset is due for a retry" in err
    command("publish")
    deposit(command.server, 11, {"a.csv": A})
    first, _ = command.results("--due")
    assert (first["request"]["base_url"], first["status"]) == (embargoed, "success-file")
    assert command.results("--due") == []  # of what is not published yet the newest counts, too
    deposit(command.server, 31, {"a.csv": A})
    first, _ = command.results("--retry")
    assert (first["request"]["base_url"], first["status"]) == (broken, "success-file")
    assert command.results("--retry", "--due") == []
