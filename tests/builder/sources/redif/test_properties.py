"""Properties of reading that hold for any bytes, and for any template however it is saved."""

import io
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from builder.sources.redif.form.specification import CODES, ERROR, WARNING
from builder.sources.redif.form.template import Template, read_templates
from tests.builder.sources.redif.samples import GOOD, events, one, templates
from tests.extent import examples

_NAMES = ["Title", "Abstract", "Author-Name", "Author-Workplace-Name", "File-URL", "Purpose", "X-a"]
_CHARACTERS = st.characters(
    exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="\ufffd\ufeff:#"
)
_WORDS = st.text(_CHARACTERS, min_size=1, max_size=12)
_VALUES = st.lists(_WORDS, min_size=0, max_size=6).map(" ".join)
_ATTRIBUTES = st.lists(st.tuples(st.sampled_from(_NAMES), _VALUES), max_size=8)
_MARKS = {"utf-8": b"\xef\xbb\xbf", "utf-16le": b"\xff\xfe", "utf-16be": b"\xfe\xff"}


@st.composite
def texts(draw: st.DrawFn) -> list[str]:
    """Return the lines of a template."""
    lines = ["Template-Type: ReDIF-Paper 1.0"]
    for name, value in draw(_ATTRIBUTES):
        lines.append(f"{name}: {value}".rstrip())
        lines += [f" {more}" for more in draw(st.lists(_WORDS, max_size=2))]
    return lines


@settings(max_examples=examples(150))
@given(texts(), st.sampled_from(["\n", "\r\n", "\r"]), st.data())
def test_how_a_template_is_saved_changes_no_digest(
    lines: list[str], end: str, data: st.DataObject
) -> None:
    plainly = one(("\n".join(lines) + "\n").encode())
    noisy: list[str] = []
    for line in lines:
        noisy.append(line + data.draw(st.sampled_from(["", " ", "\t \u00a0"])))
        noisy += data.draw(st.lists(st.sampled_from(["", "  ", "# Title: no", "\x1a"]), max_size=2))
    text = end.join(noisy) + data.draw(st.sampled_from(["", end]))
    codec = data.draw(st.sampled_from(sorted(_MARKS)))
    mark = data.draw(st.sampled_from([b"", _MARKS[codec]]))
    other = one(mark + text.encode(codec))
    assert (other.md5, other.sha256) == (plainly.md5, plainly.sha256)
    assert other.structure == plainly.structure
    assert [a._replace(line=0) for a in other.attributes] == [
        a._replace(line=0) for a in plainly.attributes
    ]


@settings(max_examples=examples(100))
@given(texts(), texts())
def test_another_text_has_another_digest(left: list[str], right: list[str]) -> None:
    same = one("\n".join(left).encode()).sha256 == one("\n".join(right).encode()).sha256
    assert same == (left == right)


@settings(max_examples=examples(100))
@given(texts().map("\n".join))
def test_windows_1252_is_read_where_it_is_no_utf_8(text: str) -> None:
    lines = [
        line
        for line in text.encode("cp1252", "ignore").split(b"\n")
        if line.isascii() or line.decode("utf-8", "ignore").encode() != line
    ]
    found = one(b"\n".join(lines))
    assert found.text == b"\n".join(lines).decode("cp1252").rstrip(" \n")
    assert found.encoding == ("ascii" if found.text.isascii() else "windows-1252")


_PIECES = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from(
            [
                b"Template-Type:",
                b"\nTemplate-Type: ReDIF-Paper 1.0\n",
                b"\r",
                b"\n",
                b"\r\n",
                b"\x1a",
                b"#",
                b"Title:",
                b"\nAuthor-Name: ",
                b"\nFile-URL: http://a.org/",
                b"\nHandle: RePEc:",
                b"\xef\xbb\xbf",
                b"\xff\xfe",
                b"\xfe\xff",
                b"\x00",
                b"\xc3",
                b"\nFile-Size: 9",
                b"\nCreation-Date: 2",
                b"\nAuthor-Email: a@",
                b"<html>",
                b"&#xD800;",
                b"//",
                b"://",
            ]
        ),
    ),
    max_size=30,
).map(b"".join)


@settings(max_examples=examples(300))
@given(_PIECES)
def test_no_bytes_raise_and_each_border_is_a_template(data: bytes) -> None:
    found = events(data)
    assert found
    place = 0
    for event in found:
        if not isinstance(event, Template):
            assert (event.code in CODES, event.severity in {ERROR, WARNING}) == (True, True)
            continue
        assert event.offset >= place
        place = event.offset + event.length
        assert place <= len(data)
        assert event.attributes[0].name.lower() == "template-type"
        assert all(line.code in CODES for line in event.diagnostics)
        assert event.valid == all(line.severity == WARNING for line in event.diagnostics)
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\x00" not in data[:4]:
        text = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"\n").lower()
        starts = (m.start() for m in re.finditer(rb"template-type:(?!//)", text))
        # Where files were joined, a mark or a handle may be before it.
        borders = sum(
            re.search(
                rb"(\A|\n|\xef\xbb\xbf|(?<![^\n])handle:[^\n]+)\Z", text[max(0, at - 200) : at]
            )
            is not None
            for at in starts
        )
        assert sum(isinstance(event, Template) for event in found) == borders


@settings(max_examples=examples(100))
@given(_PIECES, st.integers(1024, 4096))
def test_a_limit_leaves_the_borders_as_they_are(data: bytes, limit: int) -> None:
    long = data * 60
    wide = [(t.offset, t.line) for t in templates(long)]
    assert [(t.offset, t.line) for t in templates(long, limit)] == wide


@settings(max_examples=examples(100))
@given(
    st.lists(st.sampled_from(GOOD), min_size=1, max_size=6),
    st.sampled_from([b"", b"\n", b"\r\n\r\n", b"# between\n"]),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_templates_that_are_put_together_are_found_again(
    sources: list[bytes], between: bytes, end: bytes
) -> None:
    sources = [source.replace(b"\n", end) for source in sources]
    data = between.join(sources)
    at = 0
    found = list(read_templates(io.BytesIO(data)))
    assert len(found) == len(sources)
    for template, source in zip(found, sources, strict=True):
        assert isinstance(template, Template)
        assert template.offset == at
        alone = one(source)
        again = one(data[template.offset :][: template.length])
        assert alone.md5 == template.md5 == again.md5
        assert alone.structure == template.structure == again.structure
        at += len(source) + len(between)
