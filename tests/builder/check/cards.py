"""A report such as `sheaf check` makes, to be shown and compared."""

import copy
from typing import Any

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
    checks = [
        make_check("A101", "advice", section="OpenAIRE 4"),
        make_check("L104", count=12),
        make_check("H101", state="passed", count=0, findings=[]),
        make_check("S101", state="not checked", reason="there are no sets", count=0, findings=[]),
        make_check("OPENAIRE-01", "specification"),
    ]
    facts = {
        "records": 3,
        "formats": [{"prefix": "oai_dc", "schema": "http://a/s", "namespace": "http://a/n"}],
        "sets": 0,
        "deleted_record": "persistent",
        "granularity": "YYYY-MM-DDThh:mm:ssZ",
        "base_url": "http://a/oai",
        "earliest": "2025-01-01T00:00:00Z",
        "clock": 0,
        "first_page_seconds": 0.25,
        "page_seconds": None,
        "walked": {"prefix": "oai_dc", "pages": 1, "records": 3, "ended": True},
    }
    card = {
        "version": 1,
        "sheaf": "0.2",
        "url": "http://a/oai",
        "name": "A library",
        "software": "DSpace 7",
        "begun": "2026-11-01T00:00:00Z",
        "seconds": 12.5,
        "profiles": ["oai_dc"],
        "summary": {
            "breaks": 1,
            "specification": 1,
            "advice": 1,
            "passed": 1,
            "not_checked": 1,
            "verdict": "breaks",
        },
        "facts": facts,
        "checks": checks,
        "requests": [
            {
                "method": "GET",
                "url": "http://a/oai?verb=Identify",
                "status": 200,
                "seconds": 0.1,
                "bytes": 2000,
                "curl": "curl 'http://a/oai?verb=Identify'",
                "trouble": "",
            }
        ],
        "sample": [make_record(number) for number in (1, 2, 3)],
    }
    return copy.deepcopy(card | fields)
