"""Real files of RePEc: the reference parser is agreed with, but for its known faults.

Their incidences over time are those expected in test_replay.py.

The files are not part of the repository, since they belong to RePEc's archives.
"""

import json
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from builder.sources.redif.form import notation
from builder.sources.redif.form.notation import to_base64
from builder.sources.redif.form.template import Template
from tests.builder.sources.redif.samples import templates

DATA = Path(__file__).parents[4].parent / "shared" / "data" / "repec"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real ReDIF at {DATA}")


@cache
def verdicts() -> list[tuple[Template, dict[str, Any]]]:
    """Return each template of the files with ReDIF's suffixes beside the reference's verdict.

    Of RePEcauto.rdf the reference gives the one template twice; at sttseri.rdf it dies behind the
    first of three.
    """
    told: list[tuple[Template, dict[str, Any]]] = []
    by_file = defaultdict(list)
    for line in (DATA / "redif-perl-2.69.jsonl").read_text("utf-8").splitlines():
        verdict = json.loads(line)
        by_file[verdict["_file"]].append(verdict)
    for name, expected in by_file.items():
        if not name.lower().endswith((".rdf", ".redif")):
            continue
        found = templates((DATA / name).read_bytes())
        if name.endswith(("RePEcauto.rdf", "sttseri.rdf")):
            assert len(found) == {"RePEcauto.rdf": 1, "sttseri.rdf": 3}[Path(name).name]
        else:
            assert len(found) == len(expected), name
        told += zip(found, expected, strict=False)
    return told


def structure(verdict: Any) -> Any:
    """Return a verdict as a structure is, white space collapsed."""
    if isinstance(verdict, dict):
        kept = {k: v for k, v in verdict.items() if v and not (k.isupper() or k[0] == "_")}
        if verdict.get("TYPE") == "file" and "size" in kept:
            kept["size"] = [notation.normalize(size, "size") for size in kept["size"]]
        return {name: structure(entries) for name, entries in kept.items()}
    if isinstance(verdict, list):
        return [structure(entry) for entry in verdict]
    return " ".join(verdict.split()) if isinstance(verdict, str) else verdict


def test_borders_digests_and_structures_are_the_reference_parsers() -> None:
    tally: Counter[str] = Counter()
    for found, verdict in verdicts():
        tally["templates"] += 1
        tally["border"] += found.line == verdict["START_LINE_NUMBER"]
        tally["MD5, read as the reference reads"] += (
            to_base64(found.reference_md5) == verdict["MD5SUM"]
        )
        misread = found.md5 != found.reference_md5
        tally["UTF-8 that the reference misreads"] += misread
        tally["MD5, elsewhere"] += not misread and to_base64(found.md5) == verdict["MD5SUM"]
        tally["handle"] += (found.handle or "") == (verdict["ID"] or "")
        # The reference knows no DOI, and drops values that it finds wrong.
        doi = any(attribute.name.lower() == "doi" for attribute in found.attributes)
        tally["with a DOI"] += doi
        tally["verdict, elsewhere"] += not doi and found.valid == (verdict["RESULT"] == "good")
        if found.encoding == "ascii" and not doi and not found.diagnostics:
            tally["ASCII, no DOI, nothing wrong"] += 1
            own = json.loads(json.dumps(found.structure))
            own["template-type"] = [found.type]
            tally["structure, of these"] += own == structure(verdict)
    whole = tally["templates"]
    assert whole == 2263
    for name, of, least in (
        ("border", whole, 0.999),
        ("MD5, read as the reference reads", whole, 0.999),
        ("MD5, elsewhere", whole - tally["UTF-8 that the reference misreads"], 0.999),
        ("handle", whole, 0.999),
        ("verdict, elsewhere", whole - tally["with a DOI"], 1),
        ("structure, of these", tally["ASCII, no DOI, nothing wrong"], 0.99),
    ):
        assert least * of <= tally[name] <= of, name


def test_what_the_reference_gets_wrong() -> None:
    by_handle = {found.handle: found for found, _ in verdicts()}
    stopped = templates((DATA / "files/all/sttseri.rdf").read_bytes())
    assert [template.handle for template in stopped] == [
        "RePEc:stt:dpaper",
        "RePEc:stt:sbooks",
        "RePEc:stt:journl",
    ]
    with_doi = by_handle["RePEc:ceu:econwp:2025_1"]
    assert with_doi.valid
    assert with_doi.structure["doi"]
    (unmarked,) = templates((DATA / "files/redif-perl-t/unicode/DOMINIQUE_16LE.rdf").read_bytes())
    assert unmarked.handle == "RePEc:per:1946-07-11:DOMINIQUE_LEVY"


def test_every_file_is_read_and_every_digest_is_of_its_text() -> None:
    for path in sorted((DATA / "files").rglob("*.*")):
        data = path.read_bytes()
        for template in templates(data):
            alone = data[template.offset : template.offset + template.length]
            if template.encoding in ("utf-8-bom", "utf-16le", "utf-16be"):
                continue  # the mark is not there
            (again,) = templates(alone)
            assert (again.sha256, again.structure) == (template.sha256, template.structure)
