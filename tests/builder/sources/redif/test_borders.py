"""Borders, encodings and digests."""

import hashlib
import io

import pytest

from builder.sources.redif.form.notation import to_base64
from builder.sources.redif.form.template import Template, read_templates
from tests.builder.sources.redif.samples import GOOD, PAPER, SERIES, events, one, templates
from tests.memory import at_most

pytestmark = pytest.mark.shared(2)

ACCENTED = PAPER.decode().replace("On Rugs", "Größe – “rugs” 𝔘")
LATIN = PAPER.decode().replace("On Rugs", "Größe – “rugs”")


class Trickle(io.RawIOBase):
    """A stream that gives one byte at a time, as a pipe may."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._data.read(1)


def test_templates_are_found_where_they_are() -> None:
    data = b"# head\n\n" + b"\n\n".join(GOOD) + b"\n# tail\n \n\x1a"
    found = templates(data)
    assert len(found) == len(GOOD)
    for template, source in zip(found, GOOD, strict=True):
        assert template.offset == data.index(source)
        assert template.line == data[: template.offset].count(b"\n") + 1
        if source is not GOOD[-1]:
            assert data[template.offset :][: template.length] == source.rstrip()
            assert template.text == source.decode().rstrip()
    assert found[-1].text.endswith("\n# tail")


@pytest.mark.parametrize("case", [bytes.upper, bytes.lower, bytes.title])
def test_the_case_of_template_type_is_free(case: object) -> None:
    data = PAPER.replace(b"Template-Type: ReDIF-Paper", case(b"template-type: redif-paper"))  # type: ignore[operator]
    assert one(data).type == "ReDIF-Paper 1.0"


@pytest.mark.parametrize(
    "line",
    [b" Template-Type: x", b"A Template-Type: x", b"Template-Type : x", b"Template-Type://x"],
)
def test_what_begins_no_template(line: bytes) -> None:
    assert len(templates(PAPER + line + b"\n")) == 1


@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"\r"])
def test_each_line_end_counts_as_one(end: bytes) -> None:
    data = (PAPER + SERIES).replace(b"\n", end)
    first, second = templates(data)
    assert (second.line, second.offset) == (13, data.index(b"Template", 5))
    assert (first.md5, first.text) == (one(PAPER).md5, one(PAPER).text)
    assert [a.line for a in second.attributes] == [13, 14, 15, 16, 17, 18]
    assert list(read_templates(Trickle(data), "a.rdf")) == events(data)  # type: ignore[arg-type]
    mixed = PAPER.replace(b"\n", b"\r", 3).replace(b"\n", end, 3) + SERIES
    first, second = templates(mixed)
    assert (first.md5, second.line) == (one(PAPER).md5, 13)


@pytest.mark.parametrize(
    ("text", "codec", "mark", "encoding"),
    [
        (PAPER.decode(), "ascii", b"", "ascii"),
        (ACCENTED, "utf-8", b"", "utf-8"),
        (ACCENTED, "utf-8", b"\xef\xbb\xbf", "utf-8-bom"),
        (ACCENTED, "utf-16le", b"\xff\xfe", "utf-16le"),
        (ACCENTED, "utf-16be", b"\xfe\xff", "utf-16be"),
        (ACCENTED, "utf-16le", b"", "utf-16le"),
        (ACCENTED, "utf-16be", b"", "utf-16be"),
        (LATIN, "cp1252", b"", "windows-1252"),
    ],
)
@pytest.mark.parametrize("stream", [io.BytesIO, Trickle])
def test_encodings(text: str, codec: str, mark: bytes, encoding: str, stream: type) -> None:
    data = mark + (text + "\n\n" + text).encode(codec)
    found = [event for event in read_templates(stream(data)) if isinstance(event, Template)]
    assert [template.text for template in found] == [text.rstrip()] * 2
    assert {template.encoding for template in found} == {encoding}
    for template in found:
        piece = data[template.offset :][: template.length]
        assert piece.decode(codec) == text.rstrip()
    digest = hashlib.md5(text.encode()).hexdigest()
    assert {template.md5 for template in found} == {digest}


def test_a_file_of_two_encodings_is_read_line_by_line() -> None:
    data = PAPER.replace(b"On Rugs", "Größe".encode()).replace(b"They", "Größe".encode("cp1252"))
    found = one(data)
    assert found.encoding == "mixed"
    assert found.structure["title"] == ["Größe"]
    assert found.structure["abstract"] == ["Größe tie the room together."]


def test_the_digest_is_over_lines_that_count() -> None:
    data = PAPER.replace(b"Title: On Rugs\n", b"# no\nTitle: On Rugs \t\n\n  \n\x1a\n")
    assert one(data).md5 == hashlib.md5(PAPER).hexdigest()
    assert one(data).sha256 == hashlib.sha256(PAPER).hexdigest()
    assert one(PAPER.replace(b"On", b" On")).md5 != one(PAPER).md5


def test_the_reference_takes_utf_8_without_a_mark_for_windows_1252() -> None:
    data = ACCENTED.encode()
    marked = one(b"\xef\xbb\xbf" + data)
    assert marked.reference_md5 == marked.md5 == one(data).md5
    misread = data.decode("cp1252", "ignore").encode()  # of the quotation mark a byte is lost
    assert one(data).reference_md5 == hashlib.md5(misread).hexdigest()
    latin = one(LATIN.encode("cp1252"))
    assert latin.reference_md5 == latin.md5
    assert to_base64("00" * 16) == "AAAAAAAAAAAAAAAAAAAAAA"


def test_a_template_is_cut_off_at_a_line_and_the_next_one_is_whole() -> None:
    long = PAPER + b"".join(b"Note: %06d\r\n" % number for number in range(100_000))
    found = templates(long + SERIES, 5000)
    assert found[0].offset == 0
    assert found[0].text == long[: found[0].length].decode().replace("\r\n", "\n")
    assert 4980 < found[0].length <= 5000
    assert found[0].text.endswith("Note: 000332")
    assert found[1].offset == len(long)
    assert found[1].line == 12 + 100_000 + 1
    assert found[1].md5 == one(SERIES).md5
    # Borders are sought at the beginning of a line alone.
    found = templates(PAPER + b"Note: " + b"Template-Type: x " * 1_000_000 + b"\n" + SERIES, 5000)
    assert [template.handle for template in found] == ["RePEc:aaa:wpaper:98-01", "RePEc:aaa:wpaper"]
    assert found[1].line == 14


class Endless(io.RawIOBase):
    """A stream that gives the same piece many times, between a template's head and another one."""

    def __init__(self, piece: bytes, times: int) -> None:
        self._pieces = iter([PAPER, *[piece] * times, b"\n", SERIES])

    def read(self, size: int = -1) -> bytes:
        return next(self._pieces, b"")


@pytest.mark.parametrize("piece", [b"a" * 65536, b"Note: a\n" * 8192, b"#\xff\xff\r" * 16384])
def test_of_a_template_no_more_than_the_limit_is_held(piece: bytes) -> None:
    with at_most(4 << 20):  # of 39 MB
        found = list(read_templates(Endless(piece, 600), limit=10_000))  # type: ignore[arg-type]
    assert [event.handle for event in found if isinstance(event, Template)] == [
        "RePEc:aaa:wpaper:98-01",
        "RePEc:aaa:wpaper",
    ]
