"""Templates: every one that a file holds, whatever is wrong with it.

A fault is a diagnostic beside the template, never a reason to leave it out.

File blocks: the files that a template names, each with what it says of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from builder.sources.redif import lines, value
from builder.sources.redif.cluster import Arrangement, Structure
from builder.sources.redif.diagnostic import ERROR, WARNING, Diagnostic
from builder.sources.redif.lines import Attribute, parse_attributes
from builder.sources.redif.specification import OBSOLETE, SPECIFICATIONS, guess_type
from builder.sources.redif.template_text import (
    LIMIT,
    MIXED,
    UTF_8,
    EncodedLines,
    TemplateText,
    decode_lines,
    split_templates,
)

_BLANK = b" \t\r\n\x0b\x0c\x1a"  # with DOS's mark of the end
_CONTROLS = bytes(c for c in range(32) if c not in (9, 10, 13, 26)) + b"\x7f"
_HTML = re.compile(rb"\s*<(?:!doctype|html|head|body|h\d|br|b>|script|meta|title)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9-]*:")


@dataclass(frozen=True, slots=True)
class Template:
    """A template, and what is known of it by itself."""

    file: str
    offset: int
    """Of its first byte in the file."""
    length: int
    """Bytes in the file, up to the end of its last line that is not blank."""
    line: int
    """Of its Template-Type, from 1."""
    encoding: str
    """By a byte order mark utf-8-bom, utf-16le or utf-16be; else ascii, utf-8, windows-1252, or
    mixed, where some lines are UTF-8 and others windows-1252."""
    text: str
    """All of it, comments and blank lines within included, with LF as the end of lines."""
    attributes: tuple[Attribute, ...]
    """All of them in order, empty and unknown ones too; the first is the Template-Type."""
    structure: Structure
    type: str | None
    """As ReDIF spells it, such as "ReDIF-Paper 1.0", None where it has no such type."""
    type_written: str
    handle: str | None
    """The first one in its canonical form, whether or not it is a good one; None without any."""
    handle_written: str | None
    md5: str
    """Of the text, by `digest`, in hexadecimal digits."""
    sha256: str
    reference_md5: str
    """The MD5 that ReDIF-perl gives: another one where it takes UTF-8 for latin-1."""
    diagnostics: tuple[Diagnostic, ...]
    """In the order of lines."""

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong with it but what a warning tells."""
        return not any(diagnostic.severity == ERROR for diagnostic in self.diagnostics)


def read_templates(
    stream: BinaryIO, file: str = "", limit: int = LIMIT
) -> Iterator[Template | Diagnostic]:
    """Yield the templates of one file in order, and diagnostics of the file itself.

    `file` is how diagnostics name it. Of a template at most `limit` bytes are read, and about as
    much of the file is held. Raises OSError as the stream does, and nothing else.
    """
    empty, told, found = True, False, False
    for source, stretch in split_templates(stream, limit):
        empty = empty and not (stretch.data or source.start)
        if stretch.template:
            found = True
            yield _build_template(source, stretch, file)
        else:
            for diagnostic in _check_preamble(source, stretch, file):
                told = told or diagnostic.code == "html"
                yield diagnostic
    if empty:
        yield Diagnostic(file, 0, "empty-file", ERROR, "the file is empty")
    elif not (found or told):
        yield Diagnostic(file, 0, "no-template", ERROR, "no Template-Type begins a line of it")


def _check_preamble(source: EncodedLines, stretch: TemplateText, file: str) -> Iterator[Diagnostic]:
    """Yield what is to be said of that which stands before the first template."""
    if _HTML.match(stretch.data):
        yield Diagnostic(file, 1, "html", ERROR, "the file is a page of HTML")
        return
    text, _ = decode_lines(stretch.data, source.mark)
    told: set[str] = set()
    for number, line in enumerate(lines.normalize_line_ends(text).split("\n"), 1):
        content = line.rstrip()
        if not lines.is_content(content):
            continue
        code = "start-with-template-type" if _ATTRIBUTE.match(content) else "bad-line"
        if code == "bad-line" and "start-with-template-type" in told:
            continue  # it continues that attribute
        if code not in told:
            told.add(code)
            yield Diagnostic(
                file, number, code, ERROR, f"before the first Template-Type: {content[:80]}"
            )


def _build_template(source: EncodedLines, stretch: TemplateText, file: str) -> Template:
    data = stretch.data.rstrip(_BLANK)
    if stretch.cut:  # whole lines alone
        data = data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1].rstrip() or data
    text, encoding = decode_lines(data, source.mark)
    text = lines.normalize_line_ends(text)
    attributes, kept = parse_attributes(text, stretch.line)
    written = value.collapse_space(attributes[0].value)
    specification = SPECIFICATIONS.get(written.lower())
    diagnostics = _check_text(data, text, stretch, file)
    if specification is None:
        diagnostics.append(_unknown_type(written, stretch.line, file))
    arranged = Arrangement(specification or guess_type(written), attributes, file)
    diagnostics += arranged.diagnostics
    if len(diagnostics) > 1:
        diagnostics.sort(key=lambda diagnostic: diagnostic.line)
    own = arranged.handle
    md5, sha256 = lines.lines_digest(kept)
    other = source.mark is None and (encoding in (UTF_8, MIXED) or "\ufffd" in text)
    return Template(
        file,
        stretch.offset,
        source.width(data),
        stretch.line,
        encoding,
        text,
        tuple(attributes),
        arranged.structure,
        specification.type if specification else None,
        written,
        value.canonical_handle(own) if own else None,
        own,
        md5,
        sha256,
        lines.reference_md5(data) if other else md5,
        tuple(diagnostics),
    )


def _check_text(data: bytes, text: str, stretch: TemplateText, file: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    if stretch.cut:
        message = f"the template was cut off behind {len(data):,} bytes"
        found.append(Diagnostic(file, stretch.line, "template-too-large", ERROR, message))
    if "\ufffd" in text:
        line = stretch.line + text.count("\n", 0, text.index("\ufffd"))
        message = f"{text.count(chr(0xFFFD)):,} times U+FFFD in place of a character"
        found.append(Diagnostic(file, line, "undecodable", WARNING, message))
    if len(data.translate(None, _CONTROLS)) != len(data):
        message = "control characters in the text"
        found.append(Diagnostic(file, stretch.line, "control-character", WARNING, message))
    return found


def _unknown_type(written: str, line: int, file: str) -> Diagnostic:
    likely = guess_type(written)
    name = OBSOLETE.get(written.lower().partition(" ")[0])
    message = f"{name} is obsolete" if name else f"there is no type {written[:80]!r}"
    suggestion = likely.type if likely else ""
    return Diagnostic(file, line, "unknown-template-type", ERROR, message, suggestion)


_URL = "file-url"


class FileBlock(NamedTuple):
    """A file block: `url` is as written, all else in the form of `structure`, None if not said."""

    position: int
    """From 0."""
    url: str
    format: str | None
    function: str | None
    size: str | None
    restriction: str | None


def file_blocks(found: Template) -> list[FileBlock]:
    """Return the file blocks of a template in order, those without a URL left out."""
    nodes = found.structure.get("file")
    if nodes is None:  # of no known type, and so without clusters
        nodes = [{"url": [url]} for url in found.structure.get(_URL, ())]
    written = [value for name, _, value in found.attributes if name.lower() == _URL]
    if len(written) != len(nodes):  # some were misplaced
        written = [_first(node, "url") or "" for node in nodes]
    return [
        FileBlock(
            position,
            url,
            _first(node, "format"),
            _first(node, "function"),
            _first(node, "size"),
            _first(node, "restriction"),
        )
        for position, (node, url) in enumerate(zip(nodes, written, strict=True))
        if url
    ]


def _first(node: Any, name: str) -> str | None:
    values = node.get(name) if isinstance(node, dict) else None
    return values[0] if values else None
