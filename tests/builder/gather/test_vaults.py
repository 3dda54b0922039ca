"""Web archives as full texts: what an import records, by what gathering would have recorded."""

import json
from typing import Any

from builder.obi import log
from builder.obi.content import Incidence, Redirect, Row, Version, read_version
from builder.obi.run import history
from tests.builder.gather.test_command import Archive, archive, paper
from tests.builder.http import site as web
from tests.builder.http.site import Site

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
    pages |= {"/1.pdf": web.text(b"%PDF 1", ETag='"1"'), "/2.pdf": web.redirect("/two", 301),
              "/two": web.text(b"%PDF 2"), "/3.pdf": web.text(b"<html>soft", "text/html")}  # fmt: skip
    papers = [paper(1, site.url("/1.pdf")), paper(2, site.url("/2.pdf"), site.url("/3.pdf"))]
    archive.ingest(*papers)
    for change in (
        {},
        {"/1.pdf": web.text(b"%PDF 1b"), "/two": web.text(b"%PDF 2b")},
        {"/1.pdf": web.text(b"%PDF 1"), "/2.pdf": web.redirect("/three", 302),
         "/three": web.text(b"%PDF 3")},
    ):  # fmt: skip
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
