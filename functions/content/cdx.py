"""Index of captures over HTTP: answers a query with a limited number of lines.

If more lines follow, the header Link names the next request (RFC 8288). On request a resume key
does the same, as on the Internet Archive's server. A page requested by its number is complete,
because such clients do not follow links.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from functions.config.configuration import Configuration
from functions.content import listing, query
from functions.content.capture_row import FORMS
from functions.content.listing import LARGEST, CdxLines, Pages
from functions.content.protocols import DIALECTS, Searching
from functions.content.query import BadQuery, Query
from functions.content.terms import ResumeKey
from functions.database.engine import QueryError
from functions.http.http_message import Call, FormError, Reply
from functions.snapshot.manifest import Manifest

PLAIN = "text/plain"
_LONGEST = 6000
"""Longest Link, in characters: gateways accept 10 KB of headers.

A longer one becomes a resume key.
"""


def reply(call: Call, search: Searching, manifest: Manifest, settings: Configuration) -> Reply:
    """Return the answer to a call at one of DIALECTS: lines, or 400 for an invalid query.

    `call.base` is the base URL of the paths here. Raises StoreError.
    """
    dialect = DIALECTS.get(call.path.rstrip("/"))
    if dialect is None:
        return refusal(404, f"There is no such index; known: {', '.join(DIALECTS)}.")
    try:
        pairs = call.pairs()
        stores = (manifest.store, *(name for _, name in manifest.former))
        asked = query.read(pairs, manifest.namespace, stores, dialect)
        most = settings["content.lines"]
        if not asked.counts_pages and asked.page is None:
            lines = listing.find(asked, search, manifest, most)
            return _list(call, pairs, lines, manifest)
        found = listing.find_pages(asked, search, manifest, most)
        if asked.counts_pages:
            if dialect.is_silent:
                return Reply(200, PLAIN, f"{found.count}\n".encode())
            told = {"pages": found.count, "pageSize": found.size, "blocks": len(found.blocks)}
            return Reply(200, "application/json", json.dumps(told).encode() + b"\n")
        if (asked.page or 0) < max(1, found.count):
            return _page(found, listing.page(asked, search, manifest, found))
        if dialect.is_silent:
            return Reply(200, FORMS[asked.output].type, b"")
        raise BadQuery(f"page is {asked.page}, expected 0 to {max(0, found.count - 1)}.")
    except (BadQuery, FormError) as error:
        return refusal(400, str(error))
    except QueryError as error:
        (line, *_) = str(error).splitlines()
        return refusal(400, f"filter is not a regular expression of RE2: {line}")


def _list(
    call: Call, pairs: Sequence[tuple[str, str]], lines: CdxLines, manifest: Manifest
) -> Reply:
    """Return an answer that links to the next one."""
    asked, shown = lines.query, None
    headers = {}
    if lines.end is not None:
        key = ResumeKey(lines.end, "".join(lines.marks)).to_text(manifest.namespace, manifest.store)
        more = None if asked.limit is None else asked.limit - len(lines.texts) or asked.limit
        link = f'<{_following(call, pairs, key, more, asked)}>; rel="next"'
        is_told = len(link) <= _LONGEST
        if is_told:
            headers["Link"] = link
        if asked.shows_key or not is_told:
            shown = key
    return _write_reply(asked, lines.texts[::-1] if asked.is_last else lines.texts, shown, headers)


def _page(found: Pages, lines: CdxLines) -> Reply:
    """Return a complete page, or a refusal."""
    asked = lines.query
    if lines.size >= LARGEST:
        text = f"This page has more than {LARGEST} bytes; request fewer fields with fl, or"
        return refusal(413, f"{text} use showResumeKey and resumeKey.")
    if not lines.texts and asked.output == "json" and (asked.page or 0) + 1 < found.count:
        # Clients of Common Crawl's index take an empty page for the last one.
        told = {"message": f"No Captures found for: {asked.scope.url}"}
        return Reply(404, "application/json", json.dumps(told).encode() + b"\n")
    return _write_reply(asked, lines.texts, None, {})


def _write_reply(
    asked: Query, texts: Sequence[str], key: str | None, headers: Mapping[str, str]
) -> Reply:
    form = FORMS[asked.output]
    body = form.frame(asked.fields or form.fields, texts, key).encode()
    return Reply(200, form.type, body, headers, hashlib.sha256(body).hexdigest()[:32])


def refusal(status: int, text: str) -> Reply:
    """Return a one-line refusal; unprintable characters of quotations become blanks."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return Reply(status, PLAIN, f"{line}\n".encode("utf-8", "replace"))


def _following(
    call: Call, pairs: Sequence[tuple[str, str]], key: str, more: int | None, asked: Query
) -> str:
    """Return the URL of the next request: the same query with a resume key."""
    kept = [(name, text) for name, text in pairs if name not in ("resumeKey", "limit")]
    limit = [] if more is None else [("limit", str(-more if asked.is_last else more))]
    found = urlencode([*kept, *limit, ("resumeKey", key)], errors="surrogatepass")
    return f"{call.base}{call.path.rstrip('/')}?{found}"
