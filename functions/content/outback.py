"""OutbackCDX's XML, as OpenWayback and pywb's `xmlquery+` ask for it: `q=type:urlquery url:...`.

The other forms of its queries are a dialect of the index (see protocols.OUTBACK). The request has
words with colons; a value is escaped once more than the rest. A query of a prefix has one result
for each URL. The names of the elements are those of OpenWayback's remote index.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from urllib.parse import unquote_plus
from xml.etree import ElementTree as ET

from functions.config.configuration import Configuration
from functions.content import cdx
from functions.content.capture_row import UNKNOWN, CaptureRow, plain_value, to_instant
from functions.content.protocols import DIALECTS, OUTBACK_PATH
from functions.content.query import BadQuery, parse_query
from functions.content.search import CaptureSearch
from functions.http.http_message import Call, FormError, Reply, show
from functions.snapshot.manifest import Manifest

_MATCHES = {"urlquery": "exact", "prefixquery": "prefix"}
_ELEMENTS = {
    "compressedoffset": "offset",
    "compressedendoffset": "length",
    "mimetype": "mime",
    "file": "filename",
    "redirecturl": "redirect",
    "urlkey": "urlkey",
    "digest": "digest",
    "httpresponsecode": "status",
    "robotflags": "robotflags",
    "url": "url",
    "capturedate": "timestamp",
}
_LIMIT = 10_000
"""Results of an answer if the request has no limit, as in OutbackCDX."""
_DEEPEST = 100_000
"""Highest number of a result: those before it are read, too."""
_RESULT = 700
"""Bytes of a result, about."""

Fields = Mapping[str, str]


def reply(call: Call, search: CaptureSearch, manifest: Manifest, settings: Configuration) -> Reply:
    """Return the answer to a call at `/cdx` or below, in XML if it has `q` (see cdx.reply)."""
    try:
        arguments = dict(call.pairs)
        if call.path.rstrip("/") == OUTBACK_PATH and "q" in arguments:
            words = (word.partition(":") for word in arguments["q"].split())
            request = {unquote_plus(name): unquote_plus(text) for name, _, text in words}
            return _answer(arguments, request, search, manifest, settings["content.lines"])
    except (BadQuery, FormError) as error:
        return cdx.refusal(400, str(error))
    return cdx.reply(call, search, manifest, settings)


def _answer(
    arguments: Fields, request: Fields, search: CaptureSearch, manifest: Manifest, lines: int
) -> Reply:
    kind = request.get("type", "urlquery").lower()
    if kind not in _MATCHES:
        return _refuse("Unsupported query type", "The query type is unknown to the index.")
    dates = {"from": request.get("startdate", ""), "to": request.get("enddate", "")}
    pairs = [(name, text) for name, text in dates.items() if text]
    pairs += [("url", request.get("url", "")), ("matchType", _MATCHES[kind]), ("fl", "timestamp")]
    query = parse_query(pairs, manifest.namespace, (), DIALECTS[OUTBACK_PATH])
    limit = _number("limit", arguments.get("count") or request.get("limit") or str(_LIMIT))
    page = max(1, _number("start_page", arguments.get("start_page") or "1"))
    offset = _number("offset", request.get("offset") or "0")
    offset = (page - 1) * limit if "start_page" in arguments else offset
    if offset + limit > _DEEPEST:
        raise BadQuery(f"offset and limit are {offset + limit}, expected at most {_DEEPEST}.")
    listed = cdx.find(query, search, manifest, max(offset + limit, lines))
    captures = listed.captures
    if kind == "urlquery":
        results = [{n: plain_value(c, f) for n, f in _ELEMENTS.items()} for c in captures]
        for fields in results:
            if fields["compressedendoffset"] == UNKNOWN:
                del fields["compressedendoffset"]  # clients take it for a number
        date = request.get("date", "")
        if results and date.isascii() and date.isdecimal() and len(date) <= 14:
            when = to_instant(int(date.ljust(14, "0")))
            nearest = min(results, key=lambda row: abs(to_instant(int(row["capturedate"])) - when))
            nearest["closest"] = "true"
    else:
        urls = groupby(captures, key=lambda capture: capture.surt)
        results = [_url_fields([*rows]) for _, rows in urls]
        if listed.end is not None and len(results) > 1:
            results.pop()  # not all of its captures were read
    shown = results[offset : offset + min(limit, cdx.LARGEST // _RESULT)]
    if len(shown) < min(limit, len(results) - offset) and limit != _LIMIT:
        raise BadQuery(f"limit is {limit}, expected at most {cdx.LARGEST // _RESULT}.")
    if not shown:
        return _refuse("Resource Not In Archive", "The resource is not in this archive.")
    (key, _), *_ = query.scope.ranges
    about = {
        "startdate": f"{query.since:014}" if query.since > 1 else "19960101000000",
        "enddate": str(query.until),
        "type": kind,
        "firstreturned": str(offset),
        "url": key,
        "resultsrequested": str(limit),
        "resultstype": "resultstypecapture" if kind == "urlquery" else "resultstypeurl",
        "numreturned": str(len(shown)),
        "numresults": str(len(results)),
    }
    return _write("request", about, shown)


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise BadQuery(f"{name} is {show(text)}, expected a number.")
    return int(text)


def _url_fields(captures: Sequence[CaptureRow]) -> dict[str, str]:
    """Return the elements of a URL with its captures, by date."""
    first, last = captures[0], captures[-1]
    return {
        "urlkey": plain_value(last, "urlkey"),
        "originalurl": plain_value(last, "url"),
        "numversions": str(sum(1 for _ in groupby(capture.digest for capture in captures))),
        "numcaptures": str(len(captures)),
        "firstcapturets": first.stamp,
        "lastcapturets": last.stamp,
    }


def _refuse(title: str, message: str) -> Reply:
    return _write("error", {"title": title, "message": message})


def _write(name: str, about: Fields, results: Sequence[Fields] = ()) -> Reply:
    """Return a document with one element of that name, and with results if there are any."""
    root = ET.Element("wayback")
    parents = [ET.SubElement(root, name)]
    if results:
        group = ET.SubElement(root, "results")
        parents += [ET.SubElement(group, "result") for _ in results]
    for parent, fields in zip(parents, (about, *results), strict=True):
        for field, text in fields.items():
            ET.SubElement(parent, field).text = text
    return Reply(200, "application/xml", ET.tostring(root, "utf-8", xml_declaration=True))
