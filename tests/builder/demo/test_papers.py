"""The demo's RePEc archive is one, its full texts are PDFs, and they are served over real HTTP."""

import io
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pypdfium2
import pytest

from builder.demo import samples
from builder.demo.site import Shelf, serve_shelf
from builder.sources.redif.template import read_templates


def templates(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*.rdf")):
        with path.open("rb") as file:
            for template in read_templates(file, path.name):
                assert template.valid, template
                assert not template.diagnostics
                assert template.handle is not None
                found[template.handle] = template.text
    return found


def test_it_has_two_series_and_what_changes_is_one_abstract_and_one_template(
    tmp_path: Path,
) -> None:
    samples.write_papers(tmp_path, "http://a.org")
    before = templates(tmp_path)
    assert len(before) == 11
    assert sum("File-URL: http://a.org/0" in text for text in before.values()) == 3
    samples.revise_papers(tmp_path, "http://a.org")
    after = templates(tmp_path)
    assert set(before) - set(after) == {samples.REMOVED_PAPER}
    assert {handle for handle in after if after[handle] != before[handle]} == {
        samples.CHANGED_PAPER
    }


def test_full_texts_are_pdfs_that_say_what_they_are_of() -> None:
    texts = samples.paper_texts()
    assert sorted(texts) == ["/01.pdf", "/02.pdf", "/03.pdf"]
    texts["other"] = samples.pdf(r"a (b) \c")
    said = []
    for text in texts.values():
        document = pypdfium2.PdfDocument(io.BytesIO(text))
        assert len(document) == 1
        said.append(document[0].get_textpage().get_text_bounded())
    assert said[1].startswith("Honey Prices after a Late Frost.")
    assert said[-1] == r"a (b) \c"


def get(base: str, path: str, **headers: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(base.removeprefix("http://"), timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def test_the_shelf_serves_changes_and_forgets() -> None:
    shelf = Shelf({"/a.pdf": b"%PDF a"})
    with serve_shelf(shelf) as base:
        response, body = get(base, "/a.pdf")
        assert (response.status, body) == (200, b"%PDF a")
        assert response.getheader("Content-Type") == "application/pdf"
        tag = response.getheader("ETag")
        assert tag
        again, nothing = get(base, "/a.pdf", **{"If-None-Match": tag})
        assert (again.status, nothing) == (304, b"")
        shelf.put("/a.pdf", b"%PDF b")
        assert get(base, "/a.pdf", **{"If-None-Match": tag})[1] == b"%PDF b"
        shelf.take("/a.pdf")
        assert get(base, "/a.pdf")[0].status == 404
        assert get(base, "/robots.txt")[0].status == 404
    with pytest.raises(OSError):
        get(base, "/a.pdf")
