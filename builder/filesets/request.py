"""Parser for requests, from JSON lines or messages. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from builder.filesets.item import DATASET, IngestRequest

LONGEST = 1_000_000
"""Characters in a line; a longer line is invalid."""
_URL = 1500  # characters, the width of the column in sandcrawler's database


class BadLine(ValueError):
    """A line is not a valid request; the text says why."""


def of_text(url: str) -> IngestRequest:
    """Return the request for a URL or a DOI."""
    return IngestRequest(url, given={"base_url": url, "ingest_type": DATASET})


def parse(text: str) -> IngestRequest:
    """Parse a line as a request. Raises BadLine.

    A line is a JSON object with a `base_url`; the result repeats its other fields.
    """
    if len(text) > LONGEST:
        raise BadLine(f"more than {LONGEST:,} characters")
    try:
        given = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise BadLine("not JSON: nested too deeply") from error
    except ValueError as error:
        raise BadLine(f"no JSON: {error}") from error
    if not isinstance(given, Mapping):
        raise BadLine("not a JSON object")
    return _request(given)


def invalid_request(where: str, text: str) -> IngestRequest:
    """Return a placeholder request for an invalid line, so that it gets a result."""
    return IngestRequest(where, given={"line": text[:_URL]})


def is_asked(request: IngestRequest) -> bool:
    """Return whether this is a real request, not the placeholder for an invalid line."""
    return "line" not in request.given or "base_url" in request.given


def _request(given: Mapping[str, Any]) -> IngestRequest:
    url = given.get("base_url")
    if not isinstance(url, str) or not url.strip():
        raise BadLine("base_url: expected a URL or a DOI")
    if len(url) > _URL:
        raise BadLine(f"base_url: more than {_URL:,} characters")
    kind = given.get("ingest_type", DATASET)
    if not isinstance(kind, str):
        raise BadLine("ingest_type: expected a text")
    return IngestRequest(url.strip(), kind, given)


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")
