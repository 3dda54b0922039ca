"""Fetching one URL once: politely, within limits, its bytes into a temporary file."""

import hashlib
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from builder.http import outcomes, redirects, retry, robots, wire
from builder.http.addresses import Guard
from builder.http.errors import NotHad
from builder.http.limits import Budget, Limits
from builder.http.outcomes import OUTCOMES
from builder.http.politeness import Hosts, Visit
from builder.http.response import Content, Moved, Result, Unchanged
from builder.http.robots import Robots, Rules
from builder.http.wire import Answer
from builder.intake.intake import writing

AGENT = "Sheaf"
"""The product's name, by which a robots.txt may speak to us."""
HEAD = 1024
_ROBOT_HOPS = 5
_LONGEST = 1000  # characters of a header that is kept
_OF_HOST = frozenset(
    {"tls", "address-refused", "port-refused", *(c for c, o in OUTCOMES.items() if o.unreachable)}
)
"""What is so of the host, whichever file of it is asked for."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CODED = {"gzip": (".gz", ".tgz"), "x-gzip": (".gz", ".tgz"), "compress": (".z",)}
_CODED |= {"x-compress": (".z",), "bzip2": (".bz2",), "x-bzip2": (".bz2",)}
_ACCEPT = {"Accept": "*/*", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Known:
    """What the server said of the file the last time, for a conditional request."""

    etag: str | None = None
    last_modified: str | None = None

    def headers(self) -> dict[str, str]:
        """Return the headers that ask for the file only if it is another."""
        found = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {n: v for n, v in found.items() if v and v.isascii() and v.isprintable()}


@dataclass(frozen=True, slots=True)
class Means:
    """What fetching takes: how we are called, what may be asked, how much, and where bytes go."""

    agent: str
    guard: Guard
    limits: Limits
    hosts: Hosts
    scratch: Path
    obey: bool = True
    """Whether robots.txt is read and obeyed."""
    stop: threading.Event = field(default_factory=threading.Event)
    tls: ssl.SSLContext = field(default_factory=wire.context)
    robots: Robots = field(default_factory=Robots)
    wall: Callable[[], float] = time.time


def fetch(means: Means, url: str, known: Known, until: float) -> Result:
    """Ask for a normalised URL once, and return what came; what fails is a NotHad.

    Raises Deferred where its host may not be asked before `until`.
    """
    host = urlsplit(url).hostname or ""
    try:
        with means.hosts.visit(host, until) as visit:
            try:
                if means.obey:
                    _obey(means, url, visit)
                visit.request()
                result = _asked(means, url, known)
            except NotHad as failure:
                means.hosts.failed(host, failure)
                raise
            means.hosts.answered(host)
            return result
    except NotHad as failure:
        return failure.told()


def _obey(means: Means, url: str, visit: Visit) -> None:
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    rules = means.robots.of(origin, lambda: _read_rules(means, f"{origin}/robots.txt", visit))
    if delay := rules.delay(AGENT):
        means.hosts.slow_down(visit.host, delay)
    if not rules.allow(url, AGENT):
        raise NotHad("robots-disallowed", f"{origin}/robots.txt")


def _read_rules(means: Means, url: str, visit: Visit) -> Rules:
    """Return the rules at `url`. Raises NotHad."""
    own = url
    try:
        for _ in range(_ROBOT_HOPS + 1):
            visit.request()
            budget = Budget(means.limits, means.stop)
            with wire.ask(url, _headers(means), means.guard, budget, means.tls) as answer:
                location = answer.headers.get("location")
                if answer.status not in REDIRECTS or not location:
                    return robots.parsed(answer.status, robots.body(answer.headers, answer.body))
                url = redirects.target(url, Moved(location, answer.status))
    except NotHad as failure:
        if url == own and failure.code in _OF_HOST:
            raise
        detail = f"robots.txt: {failure}".removesuffix(": ")
        raise NotHad("robots-unreachable", detail, failure.status) from failure
    return robots.parsed(404, b"")  # RFC 9309, 2.3.1.2: as if there were none


def _headers(means: Means) -> dict[str, str]:
    return {"User-Agent": means.agent, **_ACCEPT}


def _asked(means: Means, url: str, known: Known) -> Result:
    budget = Budget(means.limits, means.stop)
    headers = {**_headers(means), **known.headers()}
    with wire.ask(url, headers, means.guard, budget, means.tls) as answer:
        status, said = answer.status, answer.headers
        if status == 304 and known.headers():
            return Unchanged(_short(said.get("etag")), _short(said.get("last-modified")))
        if status in REDIRECTS:
            if not said.get("location"):
                raise NotHad("bad-redirect", "no Location", status)
            return Moved(said["location"], status)
        if status != 200:
            rest = retry.seconds(said.get("retry-after"), means.wall())
            raise NotHad(outcomes.of_status(status), f"HTTP status {status}", status, rest)
        return _stored(means, url, answer)


def _stored(means: Means, url: str, answer: Answer) -> Content:
    """Write the body to a temporary file, which is the caller's to remove."""
    said, limits = answer.headers, means.limits
    coding = _coding(url, said)
    length = said.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length) > limits.bytes:
        raise NotHad("too-large", f"{int(length):,} bytes", 200)
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    head, many = b"", 0
    with (
        writing(means.scratch),
        tempfile.NamedTemporaryFile(dir=means.scratch, prefix="fobi-", delete=False) as file,
    ):
        path = Path(file.name)
        try:
            for chunk in answer.body:
                md5.update(chunk)
                sha256.update(chunk)
                many += len(chunk)
                if len(head) < HEAD:
                    head += chunk[: HEAD - len(head)]
                file.write(chunk)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return Content(
        path=path,
        size=many,
        md5=md5.hexdigest(),
        sha256=sha256.hexdigest(),
        head=head,
        media_type=_short(said.get("content-type", "").partition(";")[0].strip().lower()),
        etag=_short(said.get("etag")),
        last_modified=_short(said.get("last-modified")),
        modified=retry.moment(said.get("last-modified")),
        coding=coding,
    )


def _coding(url: str, said: Mapping[str, str]) -> str | None:
    """Return the coding of a file that is kept in one (x.ps.gz); raises NotHad for any other."""
    coding = said.get("content-encoding", "").strip().lower()
    if coding in {"", "identity", "none", "utf-8", "binary"}:
        return None
    path = unquote(urlsplit(url).path).lower()
    if path.endswith(_CODED.get(coding, ())):
        return coding.removeprefix("x-")
    raise NotHad("content-coding", coding, 200)


def _short(text: str | None) -> str | None:
    """Return what a header says; None where that is nothing, or too long to be worth keeping."""
    return text if text and len(text) <= _LONGEST else None
