"""Templates of a file, and the files that they name.

A fault gives a diagnostic beside the template; it never excludes the template.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from builder.sources.redif.form import notation
from builder.sources.redif.form.cluster import Arrangement, Structure
from builder.sources.redif.form.notation import Attribute, parse_attributes
from builder.sources.redif.form.specification import (
    ERROR,
    OBSOLETE,
    SPECIFICATIONS,
    WARNING,
    Diagnostic,
    guess_type,
)
from builder.sources.redif.form.template_text import (
    LIMIT,
    EncodedLines,
    TemplateText,
    split_templates,
)
from functions.archive import charset
from functions.archive.redif_text import ASCII, MIXED, WINDOWS, decode_lines, normalize_line_ends
from functions.snapshot.oai_name import canonical_handle

_BLANK = b" \t\r\n\x0b\x0c\x1a"  # with the end mark of DOS
_CONTROLS = bytes(c for c in range(32) if c not in (9, 10, 13, 26)) + b"\x7f"
_HTML = re.compile(rb"\s*<(?:!doctype|html|head|body|h\d|br|b>|script|meta|title)", re.IGNORECASE)
_FOREIGN_WORD = re.compile(rb"[\x80-\xff]{4}")
_HIGH_LINE = re.compile(rb"[^\r\n]*[\x80-\xff][^\r\n]*")
_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9-]*:")


@dataclass(frozen=True, slots=True)
class Template:
    """A template and its properties."""

    file: str
    offset: int
    """The offset of its first byte in the file."""
    length: int
    """Bytes in the file, to the end of its last line that is not blank."""
    line: int
    """The line of its Template-Type, from 1."""
    encoding: str
    """By a byte order mark utf-8-bom, utf-16le or utf-16be; else ascii, utf-8, windows-1252 or the
    one that was given for its file; or mixed, for lines of UTF-8 and of windows-1252. With another
    encoding than windows-1252, that is mixed-koi8-r and the like."""
    text: str
    """Its whole text, with comments and blank lines, and with LF as the end of lines."""
    attributes: tuple[Attribute, ...]
    """All attributes in order, also empty and unknown ones; the first is the Template-Type."""
    structure: Structure
    type: str | None
    """In ReDIF's spelling, such as "ReDIF-Paper 1.0"; None for an unknown type."""
    type_written: str
    handle: str | None
    """The first handle in canonical form, valid or not; None without one."""
    handle_written: str | None
    md5: str
    """Of its content lines (see `lines`), in hexadecimal digits."""
    sha256: str
    reference_md5: str
    """The MD5 of ReDIF-perl; it differs for UTF-8, which ReDIF-perl reads as latin-1."""
    diagnostics: tuple[Diagnostic, ...]
    """In the order of lines."""

    @property
    def valid(self) -> bool:
        """Whether it has no diagnostics but warnings."""
        return not any(diagnostic.severity == ERROR for diagnostic in self.diagnostics)


def read_templates(
    stream: BinaryIO,
    file: str = "",
    limit: int = LIMIT,
    other: str | None = None,
) -> Iterator[Template | Diagnostic]:
    """Yield the templates of one file in order, and diagnostics of the file itself.

    Diagnostics name the file `file`. Lines that are not UTF-8 are decoded as `other`, by default as
    windows-1252, if the file has no mark. At most `limit` bytes of a template are read, and about
    as much of the file is held in memory.
    Raises only the stream's OSError.
    """
    empty, is_html, has_template = True, False, False
    for source, part in split_templates(stream, limit):
        empty = empty and not (part.data or source.start)
        if part.template:
            has_template = True
            yield _build_template(source, part, file, other)
        else:
            for diagnostic in _check_preamble(source, part, file):
                is_html = is_html or diagnostic.code == "html"
                yield diagnostic
    if empty:
        yield Diagnostic(file, 0, "empty-file", ERROR, "the file is empty")
    elif not (has_template or is_html):
        yield Diagnostic(file, 0, "no-template", ERROR, "no Template-Type begins a line of it")


def _check_preamble(source: EncodedLines, part: TemplateText, file: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the lines before the first template."""
    if _HTML.match(part.data):
        yield Diagnostic(file, 1, "html", ERROR, "the file is a page of HTML")
        return
    text, _ = decode_lines(part.data, source.mark)
    reported: set[str] = set()
    for number, line in enumerate(normalize_line_ends(text).split("\n"), 1):
        content = line.rstrip()
        if not notation.is_content(content):
            continue
        code = "start-with-template-type" if _ATTRIBUTE.match(content) else "bad-line"
        if code == "bad-line" and "start-with-template-type" in reported:
            continue  # it continues that attribute
        if code not in reported:
            reported.add(code)
            yield Diagnostic(
                file, number, code, ERROR, f"before the first Template-Type: {content[:80]}"
            )


def _build_template(
    source: EncodedLines, part: TemplateText, file: str, other: str | None
) -> Template:
    data = part.data.rstrip(_BLANK)
    if part.cut:  # keep whole lines
        data = data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1].rstrip() or data
    text, encoding = decode_lines(data, source.mark, other or WINDOWS)
    text = normalize_line_ends(text)
    attributes, lines = parse_attributes(text, part.line)
    written = notation.collapse_space(attributes[0].value)
    specification = SPECIFICATIONS.get(written.lower())
    diagnostics = _check_text(data, text, part, file)
    if other is None and encoding in (WINDOWS, MIXED):
        diagnostics += _check_encoding(data, part, file)
    if specification is None:
        likely = guess_type(written)
        name = OBSOLETE.get(written.lower().partition(" ")[0])
        message = f"{name} is obsolete" if name else f"{written[:80]!r} is not a known type"
        suggestion = likely.type if likely else ""
        diagnostics.append(
            Diagnostic(file, part.line, "unknown-template-type", ERROR, message, suggestion)
        )
    arranged = Arrangement(specification or guess_type(written), attributes, file)
    diagnostics += arranged.diagnostics
    if len(diagnostics) > 1:
        diagnostics.sort(key=lambda diagnostic: diagnostic.line)
    own = arranged.handle
    md5, sha256 = notation.lines_digest(lines)
    is_reference = source.mark is not None or (
        encoding in (ASCII, WINDOWS) and "\ufffd" not in text
    )
    return Template(
        file,
        part.offset,
        source.width(data),
        part.line,
        encoding,
        text,
        tuple(attributes),
        arranged.structure,
        specification.type if specification else None,
        written,
        canonical_handle(own) if own else None,
        own,
        md5,
        sha256,
        md5 if is_reference else notation.reference_md5(data),
        tuple(diagnostics),
    )


def _check_text(data: bytes, text: str, part: TemplateText, file: str) -> list[Diagnostic]:
    diagnostics: list[Diagnostic] = []
    if part.cut:
        message = f"the template was truncated after {len(data):,} bytes"
        diagnostics.append(Diagnostic(file, part.line, "template-too-large", ERROR, message))
    if "\ufffd" in text:
        line = part.line + text.count("\n", 0, text.index("\ufffd"))
        message = f"{text.count(chr(0xFFFD)):,} characters were replaced by U+FFFD"
        diagnostics.append(Diagnostic(file, line, "undecodable", WARNING, message))
    if len(data.translate(None, _CONTROLS)) != len(data):
        message = "control characters in the text"
        diagnostics.append(Diagnostic(file, part.line, "control-character", WARNING, message))
    return diagnostics


def _check_encoding(data: bytes, part: TemplateText, file: str) -> list[Diagnostic]:
    """Report text of another alphabet: no word of windows-1252 has so many letters beyond ASCII."""
    word = _FOREIGN_WORD.search(data)
    if word is None:
        return []
    lines = (line for line in _HIGH_LINE.findall(data) if decode_lines(line, None)[1] == WINDOWS)
    likely = charset.detect(b"\n".join(lines), None).name
    if likely == WINDOWS:
        return []
    line = part.line + data.count(b"\n", 0, word.start())
    message = f"the text looks like {likely}, but is read as {WINDOWS}: see redif.encodings"
    return [Diagnostic(file, line, "other-encoding", WARNING, message, likely)]


_URL = "file-url"


class FileBlock(NamedTuple):
    """A file block: `url` is as written; the others are as in `structure`, None if absent."""

    position: int
    url: str
    format: str | None
    function: str | None
    size: str | None
    restriction: str | None


def file_blocks(template: Template) -> list[FileBlock]:
    """Return the file blocks of a template in order, without those that have no URL."""
    nodes = template.structure.get("file")
    if nodes is None:  # an unknown type has no clusters
        nodes = [{"url": [url]} for url in template.structure.get(_URL, ())]
    written = [value for name, _, value in template.attributes if name.lower() == _URL]
    if len(written) != len(nodes):  # some were misplaced
        written = [_first(node, "url") or "" for node in nodes]
    return [
        FileBlock(
            position,
            url,
            *(_first(node, name) for name in ("format", "function", "size", "restriction")),
        )
        for position, (node, url) in enumerate(zip(nodes, written, strict=True))
        if url
    ]


def _first(node: Any, name: str) -> str | None:
    values = node.get(name) if isinstance(node, dict) else None
    return values[0] if values else None
