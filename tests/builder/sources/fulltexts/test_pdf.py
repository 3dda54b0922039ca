"""Digests of the text of PDFs: told, never deciding."""

from pathlib import Path

import pytest

from builder.commands.demo import samples
from builder.obi.content import Incidence, Version
from builder.sources.fulltexts import pdf_text
from builder.sources.fulltexts.results import FileContent
from tests.builder.http import site as web
from tests.builder.sources.fulltexts.conftest import World

PDF = (samples.FILES / "web" / "01.pdf").read_bytes()
SAME = PDF + b"% downloaded on another day\n"


def content(path: Path, data: bytes) -> FileContent:
    path.write_bytes(data)
    return FileContent(path=path, size=len(data), md5="", sha256="", head=data[:1024])


def test_the_text_of_a_pdf(tmp_path: Path) -> None:
    pdf_text.check()
    first = pdf_text.text(content(tmp_path / "a", PDF))
    assert first is not None
    assert len(first.sha256) == 64
    assert first.method.startswith("pypdfium2/")
    assert pdf_text.text(content(tmp_path / "b", SAME)) == first


@pytest.mark.parametrize(
    "data", [b"", b"<html>", b"%PDF-1.4\n", PDF[: len(PDF) // 3], b"%PDF-" * 500]
)
def test_what_has_no_text(tmp_path: Path, data: bytes) -> None:
    assert pdf_text.text(content(tmp_path / "a", data)) is None


def test_other_bytes_with_the_same_text_are_a_change_that_says_so(world: World) -> None:
    world.refer([world.site.url("/a.pdf")])
    world.site.pages["/a.pdf"] = web.text(PDF)
    world.gather(pdf_text=True)
    world.site.pages["/a.pdf"] = web.text(SAME)
    world.gather(again=True, pdf_text=True)
    incidence, version = world.rows()
    assert isinstance(incidence, Incidence)
    assert isinstance(version, Version)
    assert incidence.what == "change"
    assert version.flags == ("text-same",)
    assert version.text_method is not None
    world.site.pages["/a.pdf"] = web.text(PDF)
    world.gather(again=True)
    assert [row.text_sha256 for row in world.rows() if isinstance(row, Version)] == [None]
