"""Report of a visit: one JSON document, from which text, pages and comparisons are made."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree

from builder import distribution
from builder.check.checks import (
    FAILED,
    NOT_CHECKED,
    PASSED,
    SEVERITIES,
    Check,
    CheckCard,
    find_group,
)
from builder.check.exchange import Exchange
from builder.check.sample import SampledRecord
from builder.check.visit import Visit

VERSION = 1
"""Version of the document."""
_SECRET = 6
"""The fewest characters of a word that is a secret."""


def make_report(
    result: Visit,
    card: CheckCard,
    checks: Mapping[str, Check],
    profiles: Iterable[str] = (),
    header_names: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the document of a visit."""
    names = [*header_names]
    is_answered = any(exchange.status for exchange in result.exchanges)
    reason = "nothing that was asked shows it" if is_answered else "the repository did not answer"
    # Those of group C need two visits: builder.check.comparison adds them.
    own = {number: check for number, check in checks.items() if find_group(number) != "C"}
    rows = card.describe(own, reason)
    return {
        "version": VERSION,
        "sheaf": distribution.version(),
        "url": result.url,
        "name": result.identify.get("repositoryName", ""),
        "software": result.software,
        "begun": result.begun,
        "seconds": result.seconds,
        "profiles": [*profiles],
        "summary": summarize(rows),
        "facts": _facts(result),
        "checks": rows,
        "requests": [_request(exchange, names) for exchange in result.exchanges],
        "sample": [*map(_record, result.sample), *result.missing],
    }


def strike_out(document: dict[str, Any], secrets: Iterable[str]) -> dict[str, Any]:
    """Return a document without the words of secrets, such as an answer may repeat.

    Words that are short or part of the repository's address stay.
    """
    text = json.dumps(document)
    for word in {word for secret in secrets for word in secret.split()}:
        if len(word) >= _SECRET and word not in document["url"]:
            text = text.replace(json.dumps(word)[1:-1], "...")
    return dict(json.loads(text))


def summarize(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the numbers of checks by severity and state, and the verdict: the worst failure."""
    states = Counter(row["severity"] if row["state"] == FAILED else row["state"] for row in rows)
    worst = next((severity for severity in SEVERITIES if states[severity]), "clean")
    return {
        **{severity: states[severity] for severity in SEVERITIES},
        "passed": states[PASSED],
        "not_checked": states[NOT_CHECKED],
        "verdict": worst if states[PASSED] or worst != "clean" else "unasked",
    }


def _facts(result: Visit) -> dict[str, Any]:
    walk, row = result.walk, result.identify
    seconds = walk.seconds if walk else []
    count = walk and (walk.count if walk.ended and walk.size is None else walk.size)
    return {
        "base_url": row.get("baseURL", ""),
        "records": count if walk and walk.seconds else None,
        "formats": [
            {
                "prefix": form.get("metadataPrefix", ""),
                "schema": form.get("schema", ""),
                "namespace": form.get("metadataNamespace", ""),
            }
            for form in result.formats
        ],
        "sets": result.sets,
        "deleted_record": row.get("deletedRecord", ""),
        "granularity": row.get("granularity", ""),
        "earliest": row.get("earliestDatestamp", ""),
        "clock": result.clock,
        "first_page_seconds": seconds[0] if seconds else None,
        "page_seconds": seconds[-1] if seconds else None,
        "walked": {
            "prefix": walk.prefix if walk else "",
            "pages": len(seconds),
            "records": walk.count if walk else 0,
            "ended": walk is not None and walk.ended,
        },
    }


def _request(exchange: Exchange, header_names: Iterable[str]) -> dict[str, Any]:
    return {
        "method": exchange.method,
        "url": exchange.url,
        "status": exchange.status,
        "seconds": exchange.seconds,
        "bytes": exchange.size,
        "curl": exchange.curl(header_names),
        "trouble": exchange.trouble,
    }


def _record(record: SampledRecord) -> dict[str, Any]:
    digest = ""
    if record.metadata:
        text = ElementTree.canonicalize(record.metadata.decode(), strip_text=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return {
        "identifier": record.identifier,
        "prefix": record.prefix,
        "datestamp": record.datestamp,
        "deleted": record.deleted,
        "sets": [*record.sets],
        "digest": digest,
    }
