"""`sheaf redif`."""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.arguments import declare
from builder.errors import UsageError
from builder.intake.paths import is_folder, list_files
from builder.progress import show_bytes
from builder.sources.redif.form import template
from builder.sources.redif.form.notation import to_base64
from builder.sources.redif.form.specification import CODES, ERROR, Diagnostic
from builder.sources.redif.form.template import Template
from builder.sources.redif.form.template_text import LEAST, LIMIT
from builder.sources.redif.tarball import is_packed, is_tar
from builder.store.context import Context
from builder.text import tally
from functions.config.gathering import contains_ascii
from functions.kinds.templates.markup import clean_fields
from functions.snapshot.errors import describe_failure

_SUFFIXES = {".rdf", ".redif"}
_STDIN = "-"
_MEMBERS = (
    *("file", "offset", "length", "line", "encoding", "type", "type_written", "handle"),
    *("handle_written", "valid", "md5", "sha256"),
)
"""Members of a template's document that are as its fields."""
_HEAD = 16  # bytes by which a compressed file is recognised


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "files FILE...": "ReDIF files, folders (with all .rdf and .redif files in them), or - "
            "for stdin",
            "--plain": "remove HTML tags and entities from the values in `structure`",
            "--limit BYTES": f"truncate templates that are longer (default: {LIMIT:,})",
            "--encoding NAME": "encoding of lines that are not UTF-8, such as koi8-r (default: "
            "windows-1252)",
            "--strict": "exit with 1 if there are errors",
        },
        limit={"default": LIMIT},
    )


def run(context: Context) -> int:
    """Read ReDIF: print templates as JSON, and a summary of faults.

    The summary goes to standard error; with --json it is the last line instead.
    """
    arguments = context.arguments
    if arguments.limit < LEAST:
        raise UsageError(f"--limit {arguments.limit}: expected a number from {LEAST:,}")
    if arguments.encoding and not contains_ascii(arguments.encoding):
        raise UsageError(f"--encoding {arguments.encoding}: expected one such as windows-1251")
    paths = _find_files(arguments.files)
    report = SyntaxReport()
    escape = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
    encoder = json.JSONEncoder(ensure_ascii=escape)
    with show_bytes(sum(map(_size, paths))) as bar:
        for path in paths:
            for event in _events(path, arguments.limit, arguments.encoding):
                if isinstance(event, Template):
                    line = document(event, report.count(event), arguments.plain)
                    print(encoder.encode(line))
                else:
                    report.note(event)
            report.files += 1
            bar(_size(path))
    if arguments.json:
        print(encoder.encode(report.document()))
    else:
        context.say(report.text())
    return 1 if arguments.strict and report.errors else 0


def _find_files(sources: Sequence[str]) -> list[Path]:
    """Return the files that the sources name, each once, in order; in folders by suffix."""
    files: list[Path] = []
    for source in sources:
        if source == _STDIN:
            files.append(Path(_STDIN))
        elif is_folder(source):
            inside = [p for p in list_files([source]) if p.suffix.lower() in _SUFFIXES]
            if not inside:
                raise UsageError(f"{source} has no .rdf or .redif file")
            files += inside
        else:
            files += (_plain_file(path) for path in list_files([source]))
    return list(dict.fromkeys(files))


def _plain_file(path: Path) -> Path:
    """Return the path. Raises UsageError for a tar or compressed file, which is not ReDIF text."""
    try:
        with path.open("rb") as stream:
            packed = is_packed(stream.read(_HEAD))
    except OSError:
        return path  # a diagnostic reports it later
    if is_tar(path):
        raise UsageError(
            f"{path} is a tarball, which this command does not read: use `sheaf ingest -f`"
        )
    if packed:
        raise UsageError(f"{path} is compressed: unpack it, or use `sheaf ingest -f` for a tarball")
    return path


def _size(path: Path) -> int:
    try:
        return 0 if str(path) == _STDIN else path.stat().st_size
    except OSError:
        return 0


def _events(path: Path, limit: int, encoding: str | None) -> Iterator[Template | Diagnostic]:
    """Yield the templates and diagnostics of a file; a read error is a diagnostic too."""
    label = os.fsencode(path).decode("utf-8", "replace")
    try:
        if str(path) == _STDIN:
            yield from template.read_templates(sys.stdin.buffer, label, limit, encoding)
            return
        with path.open("rb") as stream:
            yield from template.read_templates(stream, label, limit, encoding)
    except OSError as error:
        yield Diagnostic(label, 0, "unreadable", ERROR, describe_failure(error))


def document(parsed: Template, repeated: list[Diagnostic], plain: bool) -> dict[str, Any]:
    """Return the JSON document of a template, with its diagnostics and those of the run."""
    return {
        **{name: getattr(parsed, name) for name in _MEMBERS},
        "reference_md5sum": to_base64(parsed.reference_md5),
        "structure": clean_fields(parsed.structure) if plain else parsed.structure,
        "attributes": [
            {"name": name, "line": line, "value": value} for name, line, value in parsed.attributes
        ],
        "diagnostics": [
            {key: entry for key, entry in diagnostic._asdict().items() if key != "file"}
            for diagnostic in (*parsed.diagnostics, *repeated)
        ],
        "text": parsed.text,
    }


@dataclass
class SyntaxReport:
    """Counts of templates and diagnostics."""

    files: int = 0
    templates: int = 0
    invalid: int = 0
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By severity and code."""
    of_files: list[Diagnostic] = field(default_factory=list)
    handles: dict[str, tuple[str, int]] = field(default_factory=dict)
    """File and line of the first template of each handle."""

    @property
    def errors(self) -> int:
        """Number of diagnostics that are errors."""
        return sum(many for (severity, _), many in self.codes.items() if severity == ERROR)

    def note(self, diagnostic: Diagnostic) -> None:
        """Count a diagnostic of a file."""
        self.codes[diagnostic.severity, diagnostic.code] += 1
        self.of_files.append(diagnostic)

    def count(self, parsed: Template) -> list[Diagnostic]:
        """Count a template and its diagnostics; return one more if its handle is repeated."""
        self.templates += 1
        self.invalid += not parsed.valid
        repeated: list[Diagnostic] = []
        if parsed.handle is not None:
            here = (parsed.file, parsed.line)
            first = self.handles.setdefault(parsed.handle, here)
            if first is not here:
                message = f"{parsed.handle} is also in {first[0]}, line {first[1]}"
                repeated.append(
                    Diagnostic(parsed.file, parsed.line, "repeated-handle", ERROR, message)
                )
        for diagnostic in (*parsed.diagnostics, *repeated):
            self.codes[diagnostic.severity, diagnostic.code] += 1
        return repeated

    def document(self) -> dict[str, Any]:
        """Return the summary as a JSON document."""
        return {
            "files": self.files,
            "templates": self.templates,
            "invalid": self.invalid,
            "handles": len(self.handles),
            "codes": [
                {"code": code, "severity": severity, "count": many}
                for (severity, code), many in sorted(self.codes.items())
            ],
            "of_files": [diagnostic._asdict() for diagnostic in self.of_files],
        }

    def text(self) -> str:
        """Return the summary as text."""
        lines = [f"{d.file}: {d.message} ({d.code})" for d in self.of_files]
        lines.append(
            f"{tally(self.templates, 'template')} in {tally(self.files, 'file')}, "
            f"{self.invalid:,} with errors; {tally(len(self.handles), 'handle')}"
        )
        lines += (
            f"    {many:,} {severity} {code}: {CODES[code]}"
            for (severity, code), many in sorted(self.codes.items(), key=lambda e: (e[0][0], -e[1]))
        )
        return "\n".join(lines)
