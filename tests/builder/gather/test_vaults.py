"""Web archives as full texts: what an import records, by what gathering would have recorded."""

import gzip
import json
import signal
import time
import zipfile
from base64 import b32encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha1
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from builder.gather.vaults.archives import VaultArchives
from builder.obi import log
from builder.obi.content import (
    ExchangeRow,
    FailureRow,
    FaultRow,
    Incidence,
    Redirect,
    Row,
    SeenRow,
    Version,
    read_version,
)
from builder.obi.run import history
from tests.bucket import Bucket, administrator
from tests.builder.gather.test_command import Archive, archive, paper
from tests.builder.http import site as web
from tests.builder.http.site import Site
from tests.clock import CLOCK

__all__ = ["archive"]


def rows(store: Archive) -> list[Row]:
    """Return the rows of all runs that gathered or imported, without those of templates."""
    return [
        row
        for run in history(store.store)
        if run.kind != "ingest"
        for row in log.read_rows(store.store, run)
    ]


def describe(store: Archive) -> list[Any]:
    """Return the files' incidences, versions with their bytes, and redirects, in order."""
    found: list[Any] = []
    for row in rows(store):
        if isinstance(row, Incidence):
            found.append((row.id, row.what, row.again))
        elif isinstance(row, Version):
            data = read_version(store.store, row)
            found.append((row.id, data, row.media_type, row.etag, row.last_modified, row.flags))
        elif isinstance(row, Redirect):
            found.append((row.origin, row.target, row.status, row.target_key is not None))
    return found


def twin(archive: Archive, site: Site) -> Archive:
    folder = archive.folder / "twin"
    folder.mkdir()
    return Archive(folder, site)


def test_an_export_of_gathered_files_gives_the_same_store(archive: Archive, site: Site) -> None:
    pages = site.pages
    pages |= {
        "/1.pdf": web.text(b"%PDF 1", ETag='"1"'),
        "/2.pdf": web.redirect("/two", 301),
        "/two": web.text(b"%PDF 2"),
        "/3.pdf": web.text(b"<p>", "text/html"),
    }
    papers = [paper(1, site.url("/1.pdf")), paper(2, site.url("/2.pdf"), site.url("/3.pdf"))]
    archive.ingest(*papers)
    for change in (
        {},
        {"/1.pdf": web.text(b"%PDF 1b"), "/two": web.text(b"%PDF 2b")},
        {
            "/1.pdf": web.text(b"%PDF 1"),
            "/2.pdf": web.redirect("/three", 302),
            "/three": web.text(b"%PDF 3"),
        },
    ):
        pages |= change
        done = archive("gather", "--again")
        assert done.code == 0, done.err
    done = archive("export", "warc", archive.folder / "warc")
    assert done.code == 0, done.err
    copy = twin(archive, site)
    copy.ingest(*papers)
    done = copy("gather", "--from-warc", archive.folder / "warc", "--json")
    assert done.code == 0, done.err
    assert describe(copy) == describe(archive)
    again = copy("gather", "--from-warc", archive.folder / "warc", "--json")
    assert json.loads(again.out)["runs"] == []


WHEN = "2015-05-0{}T10:00:00Z"


class Vault:
    """A WARC file that a test writes, with a day of May 2015 for each record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("wb")
        self.writer = WARCWriter(self.file, gzip=path.name.endswith(".gz"))

    def __enter__(self) -> "Vault":
        return self

    def __exit__(self, *failure: object) -> None:
        self.file.close()

    def response(
        self, url: str, day: int, body: bytes, status: str = "200 OK", **headers: str
    ) -> None:
        fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
        head = StatusAndHeaders(status, fields, protocol="HTTP/1.1")
        about = {"WARC-Date": WHEN.format(day), "WARC-IP-Address": "192.0.2.7"}
        if cut := headers.get("Truncated"):
            about["WARC-Truncated"] = cut
        self.writer.write_record(
            self.writer.create_warc_record(
                url, "response", payload=BytesIO(body), http_headers=head, warc_headers_dict=about
            )
        )

    def request(self, url: str, method: str = "GET") -> None:
        head = StatusAndHeaders(f"{method} / HTTP/1.1", [("User-Agent", "old crawler")])
        self.writer.write_record(
            self.writer.create_warc_record(
                url,
                "request",
                payload=BytesIO(b""),
                http_headers=head,
                warc_headers_dict={"WARC-Date": WHEN.format(1)},
            )
        )

    def revisit(self, url: str, day: int, body: bytes, of: str, on: int) -> None:
        record = self.writer.create_revisit_record(
            url,
            Vault.digest(body),
            of,
            WHEN.format(on),
            warc_headers_dict={"WARC-Date": WHEN.format(day)},
        )
        self.writer.write_record(record)

    @staticmethod
    def digest(body: bytes) -> str:
        return f"sha1:{b32encode(sha1(body).digest()).decode()}"


BASE = "https://papers.example.org"


@pytest.fixture
def named(archive: Archive) -> Archive:
    """An archive whose templates name /0.pdf to /9.pdf."""
    archive.ingest(paper(1, *(f"{BASE}/{n}.pdf" for n in range(10))))
    return archive


def imported(archive: Archive, *sources: Path | str, code: int = 0) -> dict[str, Any]:
    done = archive("gather", "--from-warc", *sources, "--json")
    assert done.code == code, done.err
    told: dict[str, Any] = json.loads(done.out)
    return told


def test_each_response_is_recorded_as_if_gathered_then(named: Archive) -> None:
    whole = b"%PDF " + bytes(range(256)) * 40
    with Vault(named.folder / "vault.warc.gz") as vault:
        vault.request(f"{BASE}/0.pdf")
        vault.response(f"{BASE}/0.pdf", 1, b"%PDF 0", ETag='"x"', Content_Type="application/pdf")
        vault.response(f"{BASE}/1.pdf", 1, gzip.compress(whole), Content_Encoding="gzip")
        chunked = b"5\r\n%PDF \r\n1\r\n2\r\n0\r\n\r\n"
        vault.response(f"{BASE}/2.pdf", 1, chunked, Transfer_Encoding="chunked")
        vault.response(f"{BASE}/3.pdf", 1, b"no", "404 Not Found")
        vault.response(f"{BASE}/4.pdf", 1, b"no", "403 Forbidden")
        vault.response(f"{BASE}/5.pdf", 1, b"")
        vault.response(f"{BASE}/6.pdf", 1, b"%PDF half", Content_Length="100")
        vault.response(f"{BASE}/7.pdf", 1, b"%PDF half", Truncated="length")
        vault.response(f"{BASE}/8.pdf", 1, b"\x1f\x8bbroken", Content_Encoding="gzip")
        vault.response(f"{BASE}/style.css", 1, b"p {}")
        vault.request(f"{BASE}/9.pdf", "POST")
    told = imported(named, vault.path)
    assert (told["captures"], told["unnamed"], told["appearances"]) == (10, 1, 3)
    versions = {row.id: row for row in rows(named) if isinstance(row, Version)}
    data = {url: read_version(named.store, row) for url, row in versions.items()}
    assert data == {f"{BASE}/0.pdf": b"%PDF 0", f"{BASE}/1.pdf": whole, f"{BASE}/2.pdf": b"%PDF 2"}
    assert versions[f"{BASE}/0.pdf"].etag == '"x"'
    assert {row.id[-5:]: row.code for row in rows(named) if isinstance(row, FailureRow)} == {
        "3.pdf": "not-found",
        "4.pdf": "forbidden",
        "5.pdf": "empty",
        "6.pdf": "cut-short",
        "7.pdf": "cut-short",
        "8.pdf": "content-coding",
    }
    exchanges = {row.id: row for row in rows(named) if isinstance(row, ExchangeRow)}
    assert {row.at for row in exchanges.values()} == {1430474400}  # 1 May 2015, 10:00
    assert len(exchanges) == 9
    first = exchanges[f"{BASE}/0.pdf"]
    assert (first.sent, first.address, first.reason) == (
        ("User-Agent: old crawler",),
        "192.0.2.7",
        "OK",
    )
    assert "captured    2015-05-01T10:00:00Z, HTTP status 404" in named("obi", f"{BASE}/3.pdf").out
    assert imported(named, vault.path)["runs"] == []


def test_captures_of_a_url_are_recorded_in_the_order_of_time(named: Archive) -> None:
    url, other = f"{BASE}/0.pdf", f"{BASE}/1.pdf"
    with Vault(named.folder / "later.warc.gz") as later:
        later.response(url, 5, b"%PDF b")
        later.revisit(url, 6, b"%PDF a", url, 1)
        later.response(url, 7, b"%PDF a")
        later.response(url, 8, b"%PDF a")
    with Vault(named.folder / "earlier.warc") as earlier:
        earlier.response(url, 2, b"%PDF a")
        earlier.response(url, 3, b"gone", "410 Gone")
        earlier.response(other, 3, b"%PDF a")
        earlier.revisit(other, 4, b"%PDF unknown", other, 1)
    told = imported(named, named.folder)
    assert told["faults"] == {"no-original": 1}
    assert told["repeated"] == 1  # the day before the last
    assert [row[1:] for row in describe(named) if row[0] == url and len(row) == 3] == [
        ("appearance", False),
        ("deletion", False),
        ("appearance", True),
        ("change", False),
    ]
    seen = [row for row in rows(named) if isinstance(row, SeenRow)]
    assert [row.id for row in seen] == [url]  # the last day
    with Vault(named.folder / "last.warc.gz") as last:
        last.response(url, 1, b"%PDF before")
        last.response(url, 9, b"%PDF c")
    told = imported(named, last.path)
    assert (told["changes"], told["older"]) == (1, 1)
    assert [row.detail for row in rows(named) if isinstance(row, FaultRow)] == [
        f"{other}: {Vault.digest(b'%PDF unknown')[5:]}"
    ]


def test_redirects_are_followed_to_the_nearest_capture(named: Archive) -> None:
    with Vault(named.folder / "vault.warc.gz") as vault:
        vault.response(f"{BASE}/end", 1, b"%PDF early")
        vault.response(f"{BASE}/0.pdf", 3, b"", "301 Moved", Location="/next")
        vault.response(f"{BASE}/next", 4, b"", "302 Found", Location=f"{BASE}/end")
        vault.response(f"{BASE}/end", 4, b"%PDF near")
        vault.response(f"{BASE}/1.pdf", 5, b"", "302 Found", Location="/missing")
        vault.response(f"{BASE}/2.pdf", 5, b"", "302 Found", Location="/2.pdf#a")
        vault.response(f"{BASE}/3.pdf", 5, b"", "302 Found")
        vault.response(f"{BASE}/4.pdf", 6, b"", "302 Found", Location="/end")
        vault.response(f"{BASE}/end", 9, b"%PDF late")
    told = imported(named, vault.path)
    assert told["faults"] == {"no-target": 1}
    assert told["failures"] == {"bad-redirect": 1, "redirect-loop": 1}
    redirects = [row for row in rows(named) if isinstance(row, Redirect)]
    assert [(row.origin[-5:], row.target[-4:]) for row in redirects] == [
        ("0.pdf", "next"),
        ("4.pdf", "/end"),
        ("/next", "/end"),
    ]
    assert len({row.target_key for row in redirects}) == 1
    target = named.folder / "found.pdf"
    assert named("obi", f"{BASE}/0.pdf", "--bytes", target).code == 0
    assert target.read_bytes() == b"%PDF near"
    assert imported(named, vault.path)["runs"] == []


def test_an_import_is_exported_at_its_own_times(named: Archive, site: Site) -> None:
    with Vault(named.folder / "vault.warc.gz") as vault:
        vault.response(f"{BASE}/0.pdf", 1, gzip.compress(b"%PDF 0"), Content_Encoding="gzip")
        vault.response(f"{BASE}/1.pdf", 2, b"", "301 Moved", Location="/end")
        vault.response(f"{BASE}/end", 2, b"%PDF 1", Server="old")
        vault.response(f"{BASE}/0.pdf", 3, b"%PDF 0")
    imported(named, vault.path)
    target = named.folder / "again.warc.gz"
    assert named("export", "warc", target).code == 0
    with target.open("rb") as file:
        found = [
            (
                record.rec_type,
                record.rec_headers["WARC-Target-URI"][-5:],
                record.rec_headers["WARC-Date"],
                record.rec_headers["WARC-Refers-To-Date"],
            )
            for record in ArchiveIterator(file, check_digests="raise")
            if record.rec_type != "warcinfo" and record.content_stream().read() is not None
        ]
    first, second, third = map(WHEN.format, (1, 2, 3))
    assert found == [
        ("response", "1.pdf", second, None),
        ("response", "0.pdf", first, None),
        ("response", "g/end", second, None),
        ("revisit", "0.pdf", third, first),
    ]
    copy = twin(named, site)
    copy.ingest(paper(1, *(f"{BASE}/{n}.pdf" for n in range(10))))
    imported(copy, target)
    assert describe(copy) == describe(named)


@pytest.mark.parametrize("form", ["together", "wacz", "bucket"])
def test_archives_of_other_forms(
    named: Archive,
    form: str,
    make_bucket: Callable[..., Bucket],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source: Path | str
    plain = named.folder / "vault.warc"
    with Vault(plain) as vault:
        vault.response(f"{BASE}/0.pdf", 1, b"%PDF 0")
        vault.response(f"{BASE}/1.pdf", 1, b"%PDF 1")
    if form == "together":  # one gzip member of all records
        source = named.folder / "all.warc.gz"
        source.write_bytes(gzip.compress(plain.read_bytes()))
    elif form == "bucket":
        bucket = make_bucket()
        for name, value in bucket.environment.items():
            monkeypatch.setenv(name, value)
        source = f"s3://{bucket.bucket}/vault"
        administrator(bucket.endpoint).put_object(
            Bucket=bucket.bucket, Key="vault/some.warc", Body=plain.read_bytes()
        )
    else:
        source = named.folder / "some.wacz"
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("datapackage.json", "{}")
            packed.write(plain, "archive/data.warc")
    told = imported(named, source)
    assert (told["appearances"], told["faults"]) == (2, {})


def test_an_archive_that_breaks_off_gives_nothing(
    named: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its captures must not be taken for those of the next archive."""
    for name in "ab":
        with Vault(named.folder / f"{name}.warc") as vault:
            for n in range(3000):
                vault.response(f"{BASE}/{n}.pdf", 1 + (name == "b"), name.encode() * 200)
    opened = VaultArchives.open

    @contextmanager
    def open_broken(self: VaultArchives, number: int, **more: bool) -> Iterator[BinaryIO]:
        with opened(self, number, **more) as stream:
            yield BrokenStream(stream) if self.name(number).endswith("a.warc") else stream

    monkeypatch.setattr(VaultArchives, "open", open_broken)
    told = imported(named, named.folder / "a.warc", named.folder / "b.warc", code=1)
    assert (told["appearances"], told["faults"]) == (10, {"unreadable": 1})
    versions = [row for row in rows(named) if isinstance(row, Version)]
    assert {read_version(named.store, row)[:1] for row in versions} == {b"b"}
    exchanges = [row for row in rows(named) if isinstance(row, ExchangeRow)]
    assert (len(exchanges), len({row.at for row in exchanges})) == (10, 1)


class BrokenStream(BufferedReader):
    """A stream that fails after some reads."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        if self.reads > 12:
            raise OSError("the connection was lost")
        return super().read(size)


def test_a_killed_import_goes_on(named: Archive) -> None:
    with Vault(named.folder / "vault.warc.gz") as vault:
        for day in range(1, 6):
            for n in range(10):
                vault.response(f"{BASE}/{n}.pdf", day, b"%%PDF %d %d" % (n, day))
    stored = named.store.root / "obi"
    for least in (5, 25):
        killed = named.start("gather", "--from-warc", str(vault.path))
        while count_files(stored) < least and killed.poll() is None:
            time.sleep(0.001)
        killed.kill()
        killed.communicate()
        assert killed.returncode == -signal.SIGKILL
    with CLOCK.real():
        imported(named, vault.path)
        assert [run.counts["version"] for run in history(named.store) if run.is_import] == [10] * 5
        assert count_files(stored) == 50
        assert imported(named, vault.path)["runs"] == []


def count_files(folder: Path) -> int:
    """Return the number of objects of gathered files."""
    return sum(path.is_file() for path in folder.rglob("*papers.example.org*"))
