"""A report such as `sheaf check` makes, to be shown and compared."""

from typing import Any

from builder.check.checks import CheckCard
from builder.check.exchange import Exchange
from builder.check.lists import ListedItem, PageWalk
from builder.check.report import make_report, summarize
from builder.check.visit import Visit

HOSTILE = '</p><script>alert(1)</script>&"\x1b[31m\u202e'
"""What a repository might send: markup, a terminal's escape, a mark of direction."""


def make_check(number: str, severity: str = "breaks", **fields: Any) -> dict[str, Any]:
    """Return a check of a report: one that failed once, unless `fields` say otherwise."""
    finding = {"seen": f"{number} was seen", "where": "oai:a:1", "request": 0}
    return {
        "number": number,
        "title": f"The rule {number} holds",
        "section": "3.5.1",
        "severity": severity,
        "consequence": f"Harvesters suffer from {number}.",
        "mend": f"Mend {number}.",
        "software": {"DSpace": "Update the index.", "EPrints": "Edit the script."},
        "state": "failed",
        "reason": "",
        "count": 1,
        "findings": [finding],
    } | fields


def make_record(number: int, **fields: Any) -> dict[str, Any]:
    """Return a record of a report's sample."""
    return {
        "identifier": f"oai:a:{number}",
        "prefix": "oai_dc",
        "datestamp": f"2025-01-0{number}T00:00:00Z",
        "deleted": False,
        "sets": [],
        "digest": f"d{number}",
    } | fields


def make_card(**fields: Any) -> dict[str, Any]:
    """Return a report of a small repository with three records."""
    sample = [make_record(number) for number in (1, 2, 3)]
    items = [ListedItem(row["identifier"], row["datestamp"], False, (), 0) for row in sample]
    result = Visit(
        "http://a/oai",
        "2026-11-01T00:00:00Z",
        12.5,
        [Exchange((), "http://a/oai?verb=Identify", status=200, seconds=0.1, size=2000)],
        {
            "repositoryName": "A library",
            "baseURL": "http://a/oai",
            "deletedRecord": "persistent",
            "granularity": "YYYY-MM-DDThh:mm:ssZ",
            "earliestDatestamp": "2025-01-01T00:00:00Z",
        },
        [{"metadataPrefix": "oai_dc", "schema": "http://a/s", "metadataNamespace": "http://a/n"}],
        sets=0,
        walk=PageWalk(
            "ListRecords", {"metadataPrefix": "oai_dc"}, items, seconds=[0.25], ended=True
        ),
        clock=0,
        software="DSpace 7",
    )
    checks = [
        make_check("A101", "advice", section="OpenAIRE 4"),
        make_check("L104", count=12),
        make_check("H101", state="passed", count=0, findings=[]),
        make_check("S101", state="not checked", reason="there are no sets", count=0, findings=[]),
        make_check("OPENAIRE-01", "specification"),
    ]
    report = make_report(result, CheckCard(), {}, ["oai_dc"])
    report |= {"sheaf": "0.2", "checks": checks, "summary": summarize(checks), "sample": sample}
    return report | fields
