"""Memento (RFC 7089): the TimeMap and the TimeGate of a URL.

The mementos of a URL are the dated captures with its SURT. If only the day or the year of a capture
is known, its first instant counts. Revisits, redirects and errors are mementos too: they are what
the web answered then.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from functions.config.configuration import Configuration
from functions.content import capture_row, cdx, header_fields, near, terms
from functions.content.capture_row import CaptureRow
from functions.content.neighbours import add_links, address, date, link
from functions.content.protocols import NEWEST, BytePlace
from functions.content.search import CaptureSearch
from functions.content.terms import NoScope, Scope, cut_surt
from functions.http.http_message import Call, FormError, Reply, show
from functions.snapshot import authority, instant
from functions.snapshot.manifest import Manifest

LINK = "application/link-format"
_TIMEMAP, _TIMEGATE = "/timemap", "/timegate"
VARIED = {"Vary": "Accept-Encoding, accept-datetime"}
"""The header of a TimeGate's answers (RFC 7089, section 2.1.2)."""
_AFTER = re.compile(r"([0-9]{14})\.([0-9]{1,18})")
_LONGEST = 2000  # longest URL in headers: gateways accept 10 KB of them
_CDXJ = capture_row.FORMS["cdxj"]


@dataclass(frozen=True, slots=True)
class MementoRequest:
    """A request for a URL: the URL as given, its SURT, and the memento to continue after."""

    url: str
    key: str
    after: BytePlace | None = None


@dataclass(frozen=True, slots=True)
class TimeMap:
    """A part of a TimeMap: mementos by date, and the memento after the last of them.

    `following` is None at the end.
    """

    request: MementoRequest
    base: str
    mementos: Sequence[CaptureRow]
    following: CaptureRow | None

    @property
    def original(self) -> str:
        """The URL, escaped for a header or a link."""
        return authority.text(self.request.url.encode("utf-8", "surrogateescape"))

    def address(self, form: str, after: CaptureRow | BytePlace | None = None) -> str:
        """Return the URL of the TimeMap in a format, or of its part after a memento."""
        if after is None:
            return f"{self.base}{_TIMEMAP}/{form}/{self.original}"
        place = f"{int(after.stamp):014}.{after.position}"
        return f"{self.base}{_TIMEMAP}/{form}?url={quote(self.request.url, safe='')}&after={place}"

    @property
    def gate(self) -> str:
        """The URL of the TimeGate."""
        return f"{self.base}{_TIMEGATE}/{self.original}"


def timemap(
    call: Call, search: CaptureSearch, manifest: Manifest, settings: Configuration
) -> Reply:
    """Return the answer to a call below /timemap: a format's name, then the URL, or ?url=.

    `call.base` is the base URL of the paths here. Raises StoreError.
    """
    form, _, rest = call.path.removeprefix(_TIMEMAP).lstrip("/").partition("/")
    if form not in FORMS:
        paths = ", ".join(f"{_TIMEMAP}/{name}" for name in FORMS)
        return cdx.refusal(404, f"There is no such TimeMap; known: {paths}.")
    try:
        request = _parse_request(call, rest)
        most = settings["content.lines"]
        first, last = terms.exact_range(request.key)
        captures = search.captures(manifest, first, last, request.after, most + 1, since=1)
    except (NoScope, FormError) as error:
        return cdx.refusal(400, f"{error}.")
    if not captures:
        return _none(request)
    part = TimeMap(
        request, call.base, captures[:most], captures[most] if len(captures) > most else None
    )
    media_type, write = FORMS[form]
    body = write(part).encode()
    headers = {}
    if part.following is not None and len(part.original) <= _LONGEST:
        headers["Link"] = f'<{part.address(form, part.mementos[-1])}>; rel="next"'
    return Reply(200, media_type, body, headers, hashlib.sha256(body).hexdigest()[:32])


def timegate(
    call: Call, search: CaptureSearch, manifest: Manifest, settings: Configuration
) -> Reply:
    """Return the answer to a call below /timegate: 302 to the memento nearest to Accept-Datetime.

    Without that header it is the newest memento (RFC 7089, section 4.1: pattern 2.1). Raises
    StoreError.
    """
    wanted = call.headers.get("accept-datetime")
    try:
        request = _parse_request(call, call.path.removeprefix(_TIMEGATE).removeprefix("/"))
        moment = NEWEST if wanted is None else read_moment(wanted)
        captures = near.find_near(search, manifest, request.key, moment)
    except (NoScope, FormError) as error:
        return cdx.refusal(400, f"{error}.")
    if not captures.is_exact:
        reply = _none(request)
        return Reply(reply.status, reply.type, reply.body, VARIED)
    chosen = captures.best[0]
    location = address(call.base, chosen)
    links = header_fields.memento_headers(call.base, request.url, None)
    headers = add_links({"Location": location, **VARIED, **links}, call, search, manifest, chosen)
    return Reply(302, cdx.PLAIN, f"{location}\n".encode(), headers)


def _parse_request(call: Call, rest: str) -> MementoRequest:
    """Parse a request. Raises NoScope and FormError."""
    after = ""
    if rest:
        # A query string behind the path belongs to the URL.
        url = terms.unescape_path(f"{rest}?{call.query}" if call.query else rest)
    else:
        arguments = dict(call.pairs)
        url, after = arguments.pop("url", ""), arguments.pop("after", "")
        if arguments:
            raise NoScope(
                f"{show(next(iter(arguments)))} is not a parameter here; expected url and after"
            )
    scope: Scope = terms.parse_scope(url, "exact")
    (key, _), *_ = scope.ranges
    if not after:
        return MementoRequest(scope.url, key)
    match = _AFTER.fullmatch(after)
    if match is None:
        raise NoScope("after is not a value that this server issued")
    return MementoRequest(scope.url, key, BytePlace(cut_surt(key), int(match[1]), int(match[2])))


def read_moment(text: str) -> int:
    """Return the timestamp of an HTTP date (RFC 7089, section 2.1.1). Raises NoScope."""
    try:
        return capture_row.to_timestamp(
            datetime.strptime(text.strip(), "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
        )
    except ValueError as error:
        wanted = "expected a date as Thu, 31 May 2007 20:35:00 GMT"
        raise NoScope(f"Accept-Datetime is {show(text)}, {wanted}") from error


def _none(request: MementoRequest) -> Reply:
    return cdx.refusal(404, f"There is no memento of {show(request.url)}.")


def _link_format(part: TimeMap) -> str:
    """Return a TimeMap in link format (RFC 6690; RFC 7089, section 5)."""
    mementos = part.mementos
    span = f'from="{date(mementos[0])}"; until="{date(mementos[-1])}"'
    here = part.request.after
    lines = [
        f'<{part.original}>; rel="original"',
        f'<{part.address("link", here)}>; rel="self"; type="{LINK}"; {span}',
        f'<{part.gate}>; rel="timegate"',
    ]
    if part.following is not None:
        more = part.address("link", mementos[-1])
        lines.append(f'<{more}>; rel="timemap"; type="{LINK}"; from="{date(part.following)}"')
    for number, capture in enumerate(mementos):
        ends = ("first",) if here is None and number == 0 else ()
        if part.following is None and number == len(mementos) - 1:
            ends = (*ends, "last")
        lines.append(link(part.base, capture, " ".join((*ends, "memento"))))
    return ",\n".join(lines) + "\n"


def _json(part: TimeMap) -> str:
    """Return a TimeMap as JSON, in the format of MemGator and the Memento aggregators."""

    def link_of(capture: CaptureRow) -> Mapping[str, str]:
        uri = address(part.base, capture)
        return {"datetime": instant.to_text(capture.instant), "uri": uri}

    mementos = [*map(link_of, part.mementos)]
    ends = {"first": mementos[0]} if part.request.after is None else {}
    ends |= {"last": mementos[-1]} if part.following is None else {}
    whole = {
        "original_uri": part.original,
        "self": part.address("json", part.request.after),
        "mementos": {"list": mementos, **ends},
        "timemap_uri": {"link_format": part.address("link"), "json_format": part.address("json")},
        "timegate_uri": part.gate,
    }
    if part.following is not None:
        whole["next"] = part.address("json", part.mementos[-1])
    return json.dumps(whole) + "\n"


FORMS: Mapping[str, tuple[str, Callable[[TimeMap], str]]] = {
    "link": (LINK, _link_format),
    "json": ("application/json", _json),
    "cdxj": (
        _CDXJ.type,
        lambda part: "".join(_CDXJ.write(row, _CDXJ.fields) + "\n" for row in part.mementos),
    ),
}
"""Formats of a TimeMap: media type and writer of each."""
