"""The headers of what was gathered, in the WARC export."""

import json

from warcio.archiveiterator import ArchiveIterator

from tests.builder.http import site as web
from tests.builder.http.site import Site
from tests.builder.sources.fulltexts.test_command import Archive, archive, paper

__all__ = ["archive"]


def test_requests_and_responses_are_exported(archive: Archive, site: Site) -> None:
    site.pages["/1.pdf"] = web.redirect("/2.pdf", 301)
    site.pages["/2.pdf"] = web.text(b"%PDF 2", ETag='"x"', X_Note="for the archive")
    archive.ingest(paper(1, site.url("/1.pdf")))
    assert archive("gather").code == 0
    path = archive.folder / "files.warc.gz"
    done = archive("export", "warc", path, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["responses"], told["resources"], told["revisits"]) == (2, 0, 0)
    with path.open("rb") as file:
        found = {
            (record.rec_type, record.rec_headers["WARC-Target-URI"]): (
                record.http_headers,
                record.content_stream().read(),
                record.rec_headers,
            )
            for record in ArchiveIterator(file, check_digests="raise")
            if record.http_headers
        }
    first, last = site.url("/1.pdf"), site.url("/2.pdf")
    assert set(found) == {(kind, url) for kind in ("response", "request") for url in (first, last)}
    headers, body, about = found["response", last]
    assert (headers.get_statuscode(), body) == ("200", b"%PDF 2")
    assert headers["X-Note"] == "for the archive"
    assert about["WARC-IP-Address"] == "127.0.0.1"
    names = "Record-ID Block-Digest Payload-Digest Date IP-Address"  # in this order, as ever
    assert [name for name, _ in about.headers if name[5:] in names.split()] == [
        f"WARC-{name}" for name in names.split()
    ]
    request, _, of = found["request", last]
    assert request["User-Agent"].startswith("Sheaf/")
    assert of["WARC-Concurrent-To"] == about["WARC-Record-ID"]
    redirect, body, _ = found["response", first]
    assert (redirect.get_statuscode(), redirect["Location"], body) == ("301", "/2.pdf", b"")
