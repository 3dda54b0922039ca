"""What web strategies capture is found and replayed by the URLs of the platform."""

import base64
import gzip
import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from builder.http.secrets import mark_file, strip_secrets
from tests.builder.sources.datasets.command import Command
from tests.builder.sources.datasets.deposits import content, deposit
from tests.builder.sources.datasets.server import redirect, served

ROOT = Path(__file__).parents[4]
PYWB = ROOT / ".venv-pywb" / "bin" / "python"
WACZ = ROOT / ".venv-wacz" / "bin" / "wacz"
FILES = {"a.csv": b"day,kg\n1,2\n", "b.csv": b"day,kg\n3,4\n", "c.csv": b"day,kg\n5,6\n"}
SECRET = "5ecret5ecret"
MIRROR, BUCKET = "https://mirror.example.org", "https://hives.s3.example.com"


@pytest.fixture
def warc(command: Command) -> Path:
    """Archive three files behind two redirects each, and return their WARC.

    The first is named by its path and signed. Only their tokens name the others.
    """
    command.configure(fileset__strategy='"web"', documents__include='["redirects"]')
    answers = {}
    for number, (path, body) in enumerate(FILES.items()):
        last = f"{BUCKET}/{path}?X-Amz-Signature={SECRET}&versionId=7"
        first = f"{MIRROR}/{path}"
        if number:
            first, last = f"{MIRROR}/get?token={SECRET}{number}", f"{BUCKET}/get?jwt={SECRET}{path}"
        answers[path] = redirect(first)
        command.server.add(first, redirect(last, 303))
        command.server.add(last, served(body))
    (result,) = command.results(deposit(command.server, 11, FILES, answers=answers))
    assert (result["status"], result["ingest_strategy"]) == ("success", "web-fileset")
    (key,) = command.store.keys("warcs/")
    return command.folder / "store" / key


def test_each_step_is_a_response_and_a_request_without_secrets(warc: Path) -> None:
    data = gzip.decompress(warc.read_bytes())
    assert SECRET.encode() not in data
    with warc.open("rb") as stream:
        records = [
            (r.rec_type, r.rec_headers["WARC-Target-URI"], r.http_headers)
            for r in ArchiveIterator(stream, check_digests="raise")
        ][1:]
    assert [kind for kind, *_ in records] == ["response", "request"] * 9
    urls = [url for kind, url, _ in records if kind == "response"]
    marks = [hashlib.sha256(body).hexdigest()[:16] for body in FILES.values()]
    assert urls == [
        content(11, "a.csv"),
        f"{MIRROR}/a.csv",
        f"{BUCKET}/a.csv?versionId=7",
        content(11, "b.csv"),
        f"{MIRROR}/get?sheaf-file={marks[1]}",
        f"{BUCKET}/get?sheaf-file={marks[1]}",
        content(11, "c.csv"),
        f"{MIRROR}/get?sheaf-file={marks[2]}",
        f"{BUCKET}/get?sheaf-file={marks[2]}",
    ]
    for (_, _, head), following in zip(records[::2], urls[1:], strict=False):
        assert head["Location"] in (None, following)
    assert [head.get_statuscode() for _, _, head in records[:6:2]] == ["302", "303", "200"]


@pytest.mark.skipif(not PYWB.exists(), reason="pywb is not installed: `make clients` installs it")
def test_pywb_replays_each_file_by_the_platforms_url(warc: Path) -> None:
    stamp = warc.name.removesuffix(".warc.gz")[-14:]
    urls = [content(11, path) for path in FILES]
    done = subprocess.run(
        [PYWB, "-P", Path(__file__).with_name("with_pywb.py"), warc],
        input=json.dumps([stamp, urls]),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        {"statuses": [302, 303, 200], "sha1": hashlib.sha1(body).hexdigest()}
        for body in FILES.values()
    ]


@pytest.mark.skipif(not WACZ.exists(), reason="py-wacz is not installed: `make clients` does it")
def test_py_wacz_accepts_what_is_exported(command: Command, warc: Path) -> None:
    command("ingest", str(warc))
    command("publish")
    out = command.folder / "files.wacz"
    told, _ = command("export", "wacz", "--json", str(out))
    assert json.loads(told)["captures"] == 9
    done = subprocess.run(
        [WACZ, "validate", "-f", out], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Validation succeeded" in done.stdout


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("?token=1", "?sheaf-file=pending"),
        ("?id=4&jwt=1&api_key=2", "?id=4&sheaf-file=pending"),
        ("?token=1&expires=2", ""),  # beside its companions, a token signs the path
        ("?X-Amz-Signature=1&X-Amz-Security-Token=2", ""),
        ("?api_key=1&password=2", ""),
        ("?id=4", "?id=4"),
    ],
)
def test_only_a_token_that_may_name_the_file_is_marked(query: str, left: str) -> None:
    assert strip_secrets(f"{MIRROR}/get{query}", marked=True) == f"{MIRROR}/get{left}"
    one, other = (
        mark_file(f"{MIRROR}/get{left}", hashlib.sha256(body).hexdigest())
        for body in (b"one", b"other")
    )
    assert (one != other) == ("sheaf-file" in left)


def test_captured_files_are_published_as_captures_too(command: Command) -> None:
    """And lie where the table of files says, by the digest and the time that it tells."""
    command.configure(fileset__strategy='"web"')
    files = {"a.csv": b"day,kg\n1,2\n", "b.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9}
    page = deposit(command.server, 11, files)
    (result,) = command.results(page)
    assert (result["status"], result["ingest_strategy"]) == ("success", "web-fileset")
    (key,) = command.store.keys("warcs/")
    command("ingest", str(command.folder / "store" / key))
    command("publish")

    def asked(sql: str) -> list[list[object]]:
        out, _ = command("query", "--json", sql)
        return [list(json.loads(line).values()) for line in out.splitlines()]

    captures = (
        "SELECT url, fetch_status, content_digest, content_length, content_digest_declared, "
        "'warcs/' || warc_filename, warc_record_offset, strftime(fetch_time, '%Y%m%d%H%M%S') "
        "FROM captures ORDER BY url"
    )
    listed = "SELECT key, place, terminal_dt FROM files ORDER BY path"
    digests = [base64.b32encode(hashlib.sha1(data).digest()).decode() for data in files.values()]
    assert asked(captures) == [
        [content(11, path), 200, digest, len(data), None, *place]
        for (path, data), digest, place in zip(files.items(), digests, asked(listed), strict=True)
    ]
    assert asked("SELECT * FROM faults") == []
