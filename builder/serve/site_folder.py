"""Answers from a folder of the output `site`, as the routers of other hosts do.

The answers of OAI-PMH lie in the folder as files. What a request names differently is changed in
the head of a file, and in its token. Everything else lies below `www/`.
"""

import hashlib
import html
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from builder.errors import UsageError
from builder.serve.routers import GUARD, PAGES
from builder.serve.server import compress
from functions.http import http_message
from functions.http.http_message import OAI_PATH, Call, FormError, HttpResponse, Reply, show
from functions.oai import request as oai
from functions.oai.render.template_filters import attribute_text, clean
from functions.oai.request import OAIError, OaiFault, OaiRequest, error
from functions.oai.token import refusal
from functions.snapshot import oai_name
from functions.snapshot.site_names import (
    LETTERS,
    REPLAYED,
    TIMEMAPS,
    TYPES,
    chain_key,
    digest_name,
    page_key,
)

_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
_HEAD = re.compile(r"<responseDate>[^<]*</responseDate>\s*<request[^>]*>[^<]*</request>\n?")
_RESUMPTION = re.compile(r"<resumptionToken[^>/]*(?:/>|>[^<]*</resumptionToken>)\n?(?=</List)")
_TOKEN = re.compile(
    # letter, prefix, first position, set, until
    r"([ri]),([^,]+),([0-9]{1,18})(?:,([^,]*)(?:,([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z))?)?"
)
_TAG = re.compile(
    # Metadata has records of its own, and comments and CDATA may have what looks like some.
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<(/?)record(?=[\s/>])(?:\"[^\"]*\"|'[^']*'|[^'\">])*>",
    re.DOTALL,
)
_IDENTIFIER = re.compile(r"<record>\s*<header[^>]*>\s*<identifier>([^<]*)</identifier>")
_HEADER = re.compile(r"<header[ >].*?</header>", re.DOTALL)
_SPEC = re.compile(r"<setSpec>([^<]*)")
_FORMAT = re.compile(
    r"<metadataFormat>\s*<metadataPrefix>([^<]*)</metadataPrefix>.*?</metadataFormat>\n?", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class FileList:
    """A list of the folder, of a format and a set ("": of all records), in order.

    `pages` are the instant, first position and file of each. In pages of the list of all records,
    `is_shared`, only those of the set are meant.
    """

    prefix: str
    spec: str
    pages: tuple[tuple[str, int, str, bool], ...]

    def enter(self, since: str) -> int:
        """Return the index of the first page from an instant on, or one that no page has."""
        return bisect_left(self.pages, since, key=lambda page: page[0])

    def resume(self, position: int) -> int:
        """Return the index of the page that has a position, or of the first one."""
        return max(0, bisect_right(self.pages, position, key=lambda page: page[1]) - 1)


class SiteFolder:
    """Answers requests from the folder at `root`. Thread-safe."""

    def __init__(self, root: Path) -> None:
        """Raises UsageError if the folder has no table for routers."""
        self._root = root
        if self._text("router.json") is None:
            raise UsageError(f"{root} has no router.json: `sheaf export site {root}` writes it")

    def answer(self, call: Call) -> HttpResponse:
        """Answer a request."""
        is_oai = call.path.rstrip("/") == OAI_PATH
        allowed = _METHODS if is_oai else ("GET", "HEAD", "OPTIONS")
        if call.method == "OPTIONS":
            reply = Reply(204, "text/plain", b"", http_message.preflight(allowed))
        elif call.method not in allowed:
            allow = ", ".join(allowed)
            reply = Reply(405, "text/plain", f"Use one of: {allow}.\n".encode(), {"Allow": allow})
        elif is_oai:
            body = self._document(call)
            reply = Reply(200, "text/xml", body, digest=http_message.document_digest(body))
        else:
            reply = self._file(unquote(call.path), has_query=bool(call.query))
        return http_message.write(reply, call, compress)

    def _file(self, path: str, *, has_query: bool) -> Reply:
        """Return a file below `www/`; a link leads nowhere."""
        root = (self._root / "www").resolve()
        names: tuple[str, ...] = (path, f"{path}.html", f"{path}/index.html")
        if path.startswith(TIMEMAPS):  # a URL with a query has another TimeMap
            names = () if has_query else (path, f"{path}.link", f"{path}index.link")
        for name in names:
            file = Path(f"{root}/{name}")
            if "\0" not in name and file.is_file() and file.resolve().is_relative_to(root):
                body = file.read_bytes()
                place = f"/{file.resolve().relative_to(root).as_posix()}"
                headers = GUARD if place.startswith(REPLAYED) else PAGES
                kind = TYPES.get(file.suffix[1:], "text/html")
                return Reply(200, kind, body, headers, hashlib.sha256(body).hexdigest()[:32])
        return Reply(404, "text/plain", f"Not found; try / or {OAI_PATH}.\n".encode())

    def _document(self, call: Call) -> bytes:
        router = json.loads(self._text("router.json") or "{}")
        arguments: tuple[tuple[str, str], ...] = ()
        try:
            request = oai.parse(call.pairs)
            arguments = request.arguments
            text = FolderReading(self._text, router, request).answer()
        except FormError as failure:
            text = _errors(OaiFault(oai.BAD_ARGUMENT, str(failure)))
        except OAIError as failure:
            text = _errors(*failure.faults)
        attributes = "".join(f' {name}="{attribute_text(v)}"' for name, v in arguments)
        head = (
            f"<responseDate>{router['response_date']}</responseDate>\n"
            f"<request{attributes}>{attribute_text(call.url)}</request>\n"
        )
        text = _HEAD.sub(lambda _: head, text, count=1)
        return clean((text.replace(attribute_text(router["base"]), attribute_text(call.url)),))

    def _text(self, path: str) -> str | None:
        try:
            return (self._root / path).read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None


class FolderReading:
    """The reading of a folder for one request; `text` returns a file of it, None without it."""

    def __init__(
        self, text: Callable[[str], str | None], router: Mapping[str, Any], request: OaiRequest
    ) -> None:
        self._text, self._router, self._request = text, router, request

    def answer(self) -> str:
        """Return the answer, with the head of its file. Raises OAIError."""
        request = self._request
        if request.verb == oai.IDENTIFY:
            return self._file("identify.xml")
        if request.verb == oai.LIST_FORMATS:
            return self._formats()
        if request.verb == oai.LIST_SETS:
            return self._sets()
        return self._record() if request.verb == oai.GET_RECORD else self._page()

    def _file(self, path: str) -> str:
        text = self._text(path)
        if text is None:
            raise FileNotFoundError(path)  # the folder is damaged
        return text

    def _json(self, path: str) -> Any:
        text = self._text(path)
        return None if text is None else json.loads(text)

    def _formats(self) -> str:
        name = self._request.identifier
        if name is None:
            return self._file("formats.xml")
        place = self._place(name)
        if place is None:
            raise error(oai.NO_ITEM, f"There is no item {show(name)}.")
        text = self._text(f"formats/{place[0]}.xml")
        if text is not None and place[0] in self._router["sifted"]:

            def keep(match: re.Match[str]) -> str:
                return match[0] if self._cut(html.unescape(match[1]), *place[1:]) else ""

            text = _FORMAT.sub(keep, text)
        if text is None or not _FORMAT.search(text):
            raise error(oai.NO_FORMATS, f"Items such as {show(name)} have no format.")
        return text

    def _sets(self) -> str:
        token = self._request.token
        if token is None:
            if not self._router["has_sets"]:
                raise error(oai.NO_SETS, "This repository has no sets.")
            return self._file("sets/0.xml")
        text = self._text(f"sets/{token[2:]}.xml") if re.fullmatch("s,[0-9]+", token) else None
        if text is None:
            raise refusal()
        return text

    def _record(self) -> str:
        name, prefix = self._request.identifier or "", self._request.prefix or ""
        place, row = self._place(name), self._router["formats"].get(prefix)
        record, faults = None, []
        if place is None:
            faults.append(OaiFault(oai.NO_ITEM, f"There is no item {show(name)}."))
        elif row is not None and place[0] in row["kinds"]:
            record = self._cut(prefix, *place[1:])
        if row is None or (place is not None and record is None):
            faults.append(OaiFault(oai.NO_FORMAT, f"This item has no format {show(prefix)}."))
        if faults or record is None:
            raise OAIError(*faults)
        return _document(f"<GetRecord>\n{record}\n</GetRecord>\n")

    def _place(self, name: str) -> tuple[str, int, str] | None:
        """Return the kind, position and identifier of an item by that or another name, or None."""
        for text in (name, name.removeprefix("oai:").lower()):
            digest = digest_name(text)
            for bucket in ("recent", digest[: self._router["digits"]]):
                row = (self._json(f"index/{bucket}.json") or {}).get(digest[:16])
                if row is not None:
                    return self._router["kinds"][row[0]], row[1], (*row, name)[2]
        return None

    def _cut(self, prefix: str, position: int, identifier: str) -> str | None:
        """Return the record of an item out of the page that has its position, or None."""
        chain = self._list(prefix, "", "r")
        if chain is None or not chain.pages:
            return None
        for record in _records(self._file(chain.pages[chain.resume(position)][2])):
            match = _IDENTIFIER.match(record)
            if match and html.unescape(match[1]) == identifier:
                return record
        return None

    def _list(self, prefix: str, spec: str, letter: str = "") -> FileList | None:
        """Return a list of a format and a set, of the verb of the request, or of a letter."""
        folder = self._router["formats"][prefix][letter or LETTERS[self._request.verb]]
        table = self._json(chain_key(folder, spec or None))
        if table is None:
            return None
        pages = (
            (
                instant,
                first,
                page_key(folder, None if shared else spec or None, first),
                bool(shared),
            )
            for instant, firsts, *shared in table
            for first in firsts
        )
        return FileList(prefix, spec, tuple(pages))

    def _page(self) -> str:
        """Return a page of a list, the next one if nothing of a set is left on it."""
        request, token = self._request, self._request.token
        chain, begin, until = self._enter() if token is None else self._resume(token)
        for number in range(begin, len(chain.pages)):
            instant, _, path, is_shared = chain.pages[number]
            if until and instant > until:
                break
            text = self._file(path)
            if is_shared and not (text := _choose(text, request.verb, chain.spec)):
                continue
            behind = chain.pages[number + 1 : number + 2]
            if not behind or (until and behind[0][0] > until):
                return _RESUMPTION.sub("<resumptionToken/>\n" if token else "", text)
            if not until and not is_shared:
                return text
            parts = [LETTERS[request.verb], chain.prefix, str(behind[0][1])]
            parts += [chain.spec, until] if until else [chain.spec]
            following = f"<resumptionToken>{','.join(parts)}</resumptionToken>\n"
            return _RESUMPTION.sub(following, text)  # whose characters stand for themselves
        if token is None:
            raise error(oai.NO_RECORDS, "Nothing matches, or what matched has changed since.")
        raise refusal()

    def _enter(self) -> tuple[FileList, int, str]:
        """Return the list that a request begins, its page, and where it is cut ("": nowhere)."""
        request, values = self._request, dict(self._request.arguments)
        row, faults = self._router["formats"].get(request.prefix), []
        if row is None:
            text = f"There is no metadata format {show(request.prefix or '')} here."
            faults.append(OaiFault(oai.NO_FORMAT, text))
        if request.set is not None and not self._router["has_sets"]:
            faults.append(OaiFault(oai.NO_SETS, "This repository has no sets."))
        if row is None or faults:
            raise OAIError(*faults)
        chain = self._list(request.prefix or "", request.set or "")
        if chain is None:
            raise error(oai.NO_RECORDS, f"There are no records in a set {show(request.set or '')}.")
        until = values.get("until", "")
        until += "T23:59:59Z" if len(until) == 10 else ""
        return chain, chain.enter(values.get("from", "")), until

    def _resume(self, token: str) -> tuple[FileList, int, str]:
        """Return what `_enter` does, of the list that a token continues."""
        match = _TOKEN.fullmatch(token)
        if match is None or match[1] != LETTERS[self._request.verb]:
            raise refusal()
        prefix, position, spec, until = match[2], int(match[3]), match[4] or "", match[5] or ""
        is_known = prefix in self._router["formats"] and (spec == "" or oai_name.is_set(spec))
        if not is_known or (chain := self._list(prefix, spec)) is None:
            raise refusal()
        return chain, chain.resume(position), until


def _choose(page: str, verb: str, spec: str) -> str:
    """Return a page with those records of another that are in a set; nothing if there are none."""
    elements = _HEADER.findall(page) if verb == oai.LIST_IDENTIFIERS else _records(page)
    chosen = []
    for element in elements:
        specs = _SPEC.findall(element.partition("</header>")[0])
        if any(oai_name.is_within_set(html.unescape(each), spec) for each in specs):
            chosen.append(element)
    content = "\n".join((f"<{verb}>", *chosen, "<resumptionToken/>", f"</{verb}>\n"))
    return _document(content) if chosen else ""


def _records(page: str) -> Iterator[str]:
    """Yield the records of a page, without those within their metadata."""
    depth = start = 0
    for tag in _TAG.finditer(page):
        if tag[1] is None or tag[0].endswith("/>"):
            continue
        if tag[1]:
            depth -= 1
            if depth == 0:
                yield page[start : tag.end()]
        else:
            start = start if depth else tag.start()
            depth += 1


def _document(content: str) -> str:
    oai_pmh = "http://www.openarchives.org/OAI/2.0/"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<OAI-PMH xmlns="{oai_pmh}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{oai_pmh} {oai_pmh}OAI-PMH.xsd">\n'
        f"<responseDate></responseDate>\n<request></request>\n{content}</OAI-PMH>\n"
    )


def _errors(*faults: OaiFault) -> str:
    return _document(
        "".join(
            f'<error code="{fault.code}">{attribute_text(fault.message)}</error>\n'
            for fault in faults
        )
    )
