"""Samples of the demo: a RePEc archive, and a dataset.

The archive has two series with a few papers, three of them with full texts. The dataset is a
record of a local platform with the API of InvenioRDM.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

CHANGED_PAPER, REMOVED_PAPER = "RePEc:lip:wpaper:2026-01", "RePEc:lip:wpaper:2026-04"
"""The paper whose abstract `revise` changes, and the template that it removes."""

_ARCHIVE = """\
Template-Type: ReDIF-Archive 1.0
Handle: RePEc:lip
Name: Institute of Economics, Lipová
Maintainer-Email: repec@example.org
Description: Papers on trees, shade and the price of honey
URL: {base}/RePEc/lip/
"""

_SERIES = """\
Template-Type: ReDIF-Series 1.0
Name: Lipová Working Papers
Provider-Name: Institute of Economics, Lipová
Maintainer-Email: repec@example.org
Type: ReDIF-Paper
Handle: RePEc:lip:wpaper

Template-Type: ReDIF-Series 1.0
Name: Lipová Economic Letters
Provider-Name: Institute of Economics, Lipová
Maintainer-Email: repec@example.org
Type: ReDIF-Article
Handle: RePEc:lip:journl
"""

_AUTHORS = {
    "Novák": "Author-Name: Jana Nováková\nAuthor-Email: novakova@example.org\n",
    "Dvořák": "Author-Name: Petr Dvořák\nAuthor-Workplace-Name: University of Lipová\n",
}
_PAPERS = (
    # number, title, author, abstract, whether it has a full text
    ("01", "The Value of a Lime Tree's Shade", "Novák", "What people pay for a seat.", True),
    ("02", "Honey Prices after a Late Frost", "Dvořák", "A panel of ninety hives.", True),
    ("03", "Libraries as Anchors of Small Towns", "Novák", "Loans, bread and buses.", True),
    ("04", "A Note on Benches", "Dvořák", "Why they face each other.", False),
    ("05", "Who Reads in the Park?", "Novák", "Counting heads and covers.", False),
)
_ARTICLES = (
    ("p:1-12", "Shade as a Public Good", "Novák", "1", "12"),
    ("p:13-20", "Bees and Bookings", "Dvořák", "13", "20"),
    ("p:21-30", "The Economics of Opening Hours", "Novák", "21", "30"),
)
DATASET_RECORD = "/records/hives-2024"
_API = "/api/records/hives-2024"
_FILES = {
    "README.txt": b"Weights of hives on the roofs of a town. Made up for a demonstration.\n",
    "hives.csv": b"hive,roof\n1,school\n2,library\n3,town hall\n",
    "weights.csv": b"day,hive,grams\n"
    + b"".join(
        b"2024-06-%02d,%d,%d\n" % (d, h, 31_000 + 70 * d + 900 * h)
        for d in range(1, 31)
        for h in (1, 2, 3)
    ),
}
DATASET_FILES = len(_FILES)


def write_papers(folder: Path, base: str) -> None:
    """Write the archive below `folder`; its full texts are at the URL `base` (no final slash).

    Raises OSError.
    """
    archive = folder / "lip"
    (archive / "wpaper").mkdir(parents=True)
    (archive / "journl").mkdir()
    (archive / "liparch.rdf").write_text(_ARCHIVE.format(base=base), "utf-8")
    (archive / "lipseri.rdf").write_text(_SERIES, "utf-8")
    for number, *_ in _PAPERS:
        _file(folder, number).write_text(_paper(number, base), "utf-8")
    articles = "\n".join(_article(*article) for article in _ARTICLES)
    (archive / "journl" / "2026.rdf").write_text(articles, "utf-8")


def revise_papers(folder: Path, base: str) -> None:
    """Change an abstract in the archive below `folder`, and remove a template."""
    text = _paper("01", base).replace("What people pay", "What people in 40 towns pay")
    _file(folder, "01").write_text(text, "utf-8")
    _file(folder, "04").unlink()


def paper_texts() -> dict[str, bytes]:
    """Return the full texts by path on their server."""
    return {
        f"/{number}.pdf": pdf(f"{title}. {abstract}")
        for number, title, _, abstract, has_text in _PAPERS
        if has_text
    }


def pdf(text: str) -> bytes:
    """Return a PDF with one page of `text`, which is ASCII."""
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    content = f"BT /F1 12 Tf 72 720 Td ({escaped}) Tj ET"
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
        "/Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    made, places = "%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{one}\nendobj\n"
    rows = "".join(f"{place:010} 00000 n \n" for place in places)
    count = len(objects) + 1
    table = f"xref\n0 {count}\n0000000000 65535 f \n{rows}"
    end = f"trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{len(made)}\n%%EOF\n"
    return (made + table + end).encode("ascii")


def _file(folder: Path, number: str) -> Path:
    return folder / "lip" / "wpaper" / f"{number}.rdf"


def _paper(number: str, base: str) -> str:
    (found,) = [paper for paper in _PAPERS if paper[0] == number]
    _, title, author, abstract, has_text = found
    file = f"File-URL: {base}/{number}.pdf\nFile-Format: application/pdf\n" if has_text else ""
    return (
        f"Template-Type: ReDIF-Paper 1.0\n{_AUTHORS[author]}Title: {title}\n"
        f"Abstract: {abstract}\nCreation-Date: 2026-{number}\nClassification-JEL: Q57\n"
        f"{file}Handle: RePEc:lip:wpaper:2026-{number}\n"
    )


def _article(code: str, title: str, author: str, first: str, last: str) -> str:
    return (
        f"Template-Type: ReDIF-Article 1.0\n{_AUTHORS[author]}Title: {title}\n"
        f"Journal: Lipová Economic Letters\nYear: 2026\nVolume: 1\nPages: {first}-{last}\n"
        f"Handle: RePEc:lip:journl:v:1:y:2026:{code}\n"
    )


def dataset_answers(base: str) -> Mapping[str, tuple[str, bytes]]:
    """Return the responses of the platform at `base`: media type and body by path."""
    found = {
        f"{_API}/files/{name}/content": (
            "text/plain" if name.endswith(".txt") else "text/csv",
            data,
        )
        for name, data in _FILES.items()
    }
    return {**found, _API: ("application/json", json.dumps(_record(base)).encode())}


def _record(base: str) -> dict[str, object]:
    def person(family: str, given: str) -> dict[str, object]:
        return {
            "person_or_org": {
                "type": "personal",
                "name": f"{family}, {given}",
                "family_name": family,
                "given_name": given,
            },
            "affiliations": [{"name": "Institute of Bees"}],
        }

    entries = {
        name: {
            "key": name,
            "size": len(data),
            "checksum": f"md5:{hashlib.md5(data, usedforsecurity=False).hexdigest()}",
            "mimetype": "text/plain" if name.endswith(".txt") else "text/csv",
            "links": {"content": f"{base}{_API}/files/{name}/content"},
        }
        for name, data in _FILES.items()
    }
    return {
        "id": "hives-2024",
        "parent": {"id": "hives"},
        "is_published": True,
        "access": {"record": "public", "files": "public"},
        "pids": {"doi": {"identifier": "10.5072/hives.2024"}},
        "links": {"self": f"{base}{_API}", "self_html": f"{base}{DATASET_RECORD}"},
        "metadata": {
            "title": "Weights of hives in a town",
            "creators": [person("Wax", "Ida"), person("Comb", "Otto")],
            "publisher": "Sheaf's demonstration",
            "publication_date": "2024-07-01",
            "resource_type": {"id": "dataset"},
            "description": "<p>Three hives were weighed on each day of June.</p>",
            "subjects": [{"subject": "honey"}, {"subject": "bees"}],
            "languages": [{"id": "eng"}],
            "rights": [
                {
                    "id": "cc-by-4.0",
                    "title": {"en": "Creative Commons Attribution 4.0"},
                    "link": "https://creativecommons.org/licenses/by/4.0/",
                }
            ],
            "version": "1.0",
        },
        "files": {
            "enabled": True,
            "count": len(_FILES),
            "total_bytes": sum(map(len, _FILES.values())),
            "entries": entries,
        },
    }
