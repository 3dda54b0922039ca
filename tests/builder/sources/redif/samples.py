"""Templates that the tests make, good ones and one for each defect."""

import io

from builder.sources.redif.form.specification import Diagnostic
from builder.sources.redif.form.template import Template, read_templates
from builder.sources.redif.form.template_text import LIMIT

PAPER = b"""Template-Type: ReDIF-Paper 1.0
Author-Name: Lebowski, Jeffrey
Author-WorkPlace-Name: Bowling Alley
Author-Email: dude@example.org
Author-Name: Sobchak, Walter
Title: On Rugs
Abstract: They tie
 the room together.
File-URL: http://example.org/rugs.pdf
File-Format: application/pdf
Creation-Date: 1998-03
Handle: RePEc:aaa:wpaper:98-01
"""
SERIES = b"""Template-Type: ReDIF-Series 1.0
Name: Working Papers
Provider-Name: Department of Rugs
Maintainer-Email: rugs@example.org
Type: ReDIF-Paper
Handle: RePEc:aaa:wpaper
"""
ARCHIVE = b"""Template-Type: ReDIF-Archive 1.0
Name: Rugs
Maintainer-Email: rugs@example.org
URL: http://example.org/RePEc/aaa/
Handle: RePEc:aaa
"""
BOOK = b"""Template-Type: ReDIF-Book 1.0
Title: All Rugs
Editor-Name: Lebowski, Maude
Handle: RePEc:aaa:rbooks:1
"""
CHAPTER = b"""Template-Type: ReDIF-Chapter 1.0
Title: Some Rugs
Author-Name: Lebowski, Maude
In-Book: RePEc:aaa:rbooks:1
Handle: RePEc:aaa:rchaps:1-2
"""
PERSON = b"""Template-Type: ReDIF-Person 1.0
Name-Full: Jeffrey Lebowski
Workplace-Name: None
Workplace-Share: 100
Author-Paper: RePEc:aaa:wpaper:98-01
Handle: RePEc:per:1942-12-04:jeffrey_lebowski
"""
INSTITUTION = b"""Template-Type: ReDIF-Institution 1.0
Primary-Name: University of Rugs
Secondary-Name: Department of Rugs
Secondary-Homepage: http://example.org/
Handle: RePEc:edi:derugus
"""
GOOD = (PAPER, SERIES, ARCHIVE, BOOK, CHAPTER, PERSON, INSTITUTION)


def events(data: bytes, limit: int = LIMIT) -> list[Template | Diagnostic]:
    return list(read_templates(io.BytesIO(data), "a.rdf", limit))


def templates(data: bytes, limit: int = LIMIT) -> list[Template]:
    return [event for event in events(data, limit) if isinstance(event, Template)]


def one(data: bytes, limit: int = LIMIT) -> Template:
    (found,) = events(data, limit)
    assert isinstance(found, Template)
    return found


def diagnostics(data: bytes, limit: int = LIMIT) -> list[Diagnostic]:
    """Return all that is said of a file, of its templates too."""
    said: list[Diagnostic] = []
    for event in events(data, limit):
        said += event.diagnostics if isinstance(event, Template) else [event]
    return said


def said(data: bytes, limit: int = LIMIT) -> list[tuple[int, str, str]]:
    """Return line, severity and code of all that is said of a file."""
    return [(d.line, d.severity, d.code) for d in diagnostics(data, limit)]


def with_line(line: str, template: bytes = PAPER, at: int = 1) -> bytes:
    """Return the template with one more line, behind its first ones."""
    lines = template.decode().splitlines()
    return ("\n".join([*lines[:at], line, *lines[at:]]) + "\n").encode()


def without(name: str, template: bytes = PAPER) -> bytes:
    """Return the template without the attribute's lines."""
    lines = template.decode().splitlines()
    return ("\n".join(line for line in lines if not line.startswith(f"{name}:")) + "\n").encode()
