"""Answers from a folder of the output `site`, as the routers of other hosts do.

The answers of OAI-PMH lie in the folder as files. What a request names differently is changed in
the head of a file, and in its token. Everything else lies below `www/`.
"""

import hashlib
import html
import json
import re
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
)

_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
_HEAD = re.compile(r"<responseDate>[^<]*</responseDate>\s*<request[^>]*>[^<]*</request>\n?")
_RESUMPTION = re.compile(r"<resumptionToken[^>/]*(?:/>|>([^<]*)</resumptionToken>)\n?(?=</List)")
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
_FORMAT = re.compile(
    r"<metadataFormat>\s*<metadataPrefix>([^<]*)</metadataPrefix>.*?</metadataFormat>\n?", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class FileList:
    """A list of the folder: `pages` are the instant and first position of each, in order."""

    path: str
    pages: tuple[tuple[str, int], ...]

    def find(self, first: int, since: str = "", until: str = "") -> int | None:
        """Return the index of the first page from a position and an instant on, or None.

        There is none if its instant is later than `until` ("": no limit).
        """
        for number, (instant, position) in enumerate(self.pages):
            if position >= first and instant >= since:
                return number if not until or instant <= until else None
        return None


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
        headers = GUARD if path.startswith(REPLAYED) else PAGES
        for name in names:
            file = Path(f"{root}/{name}")
            if "\0" not in name and file.is_file() and file.resolve().is_relative_to(root):
                body = file.read_bytes()
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
            lists = self._router["formats"]

            def keep(match: re.Match[str]) -> str:
                row = lists.get(html.unescape(match[1]))
                return match[0] if row and self._cut(row, place[1], name) else ""

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
            record = self._cut(row, place[1], name)
        if row is None or (place is not None and record is None):
            faults.append(OaiFault(oai.NO_FORMAT, f"This item has no format {show(prefix)}."))
        if faults or record is None:
            raise OAIError(*faults)
        return _document(f"<GetRecord>\n{record}\n</GetRecord>\n")

    def _place(self, identifier: str) -> tuple[str, int] | None:
        """Return the kind and the position of an item, or None."""
        digest = digest_name(identifier)
        for bucket in ("recent", digest[: self._router["digits"]]):
            place = (self._json(f"index/{bucket}.json") or {}).get(digest[:16])
            if place is not None:
                return self._router["kinds"][place[0]], place[1]
        return None

    def _cut(self, row: Mapping[str, str], position: int, identifier: str) -> str | None:
        """Return the record of an item out of the page that has its position, or None."""
        chain = self._list(row["r"], "")
        firsts = [first for _, first in chain.pages if first <= position] if chain else []
        if chain is None or not firsts:
            return None
        for record in _records(self._file(f"{chain.path}/{firsts[-1]}.xml")):
            match = _IDENTIFIER.match(record)
            if match and html.unescape(match[1]) == identifier:
                return record
        return None

    def _list(self, folder: str, spec: str) -> FileList | None:
        """Return a list by its folder in the table, and its set."""
        name = chain_key(folder, spec or None)
        table = self._json(name)
        if table is None:
            return None
        pages = tuple((instant, first) for instant, firsts in table for first in firsts)
        return FileList(name.removesuffix(".json"), pages)

    def _page(self) -> str:
        """Return a page of a list."""
        token = self._request.token
        chain, number, until = self._enter() if token is None else self._resume(token)
        following = [instant for instant, _ in chain.pages[number + 1 : number + 2]]
        text = self._file(f"{chain.path}/{chain.pages[number][1]}.xml")
        if not following or (until and following[0] > until):
            return _RESUMPTION.sub("<resumptionToken/>\n" if token else "", text)
        if not until:
            return text

        def cut(match: re.Match[str]) -> str:
            tail = until if match[1].count(",") > 2 else f",{until}"
            return f"<resumptionToken>{match[1]},{tail}</resumptionToken>\n"

        return _RESUMPTION.sub(cut, text)

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
        chain = self._list(row[LETTERS[request.verb]], request.set or "")
        if chain is None and request.set is not None:
            raise error(oai.NO_RECORDS, f"There are no records in a set {show(request.set)}.")
        since, until = values.get("from", ""), values.get("until", "")
        until += "T23:59:59Z" if len(until) == 10 else ""
        number = chain.find(0, since, until) if chain else None
        if chain is None or number is None:
            raise error(oai.NO_RECORDS, "Nothing matches, or what matched has changed since.")
        return chain, number, until

    def _resume(self, token: str) -> tuple[FileList, int, str]:
        """Return what `_enter` does, of the list that a token continues."""
        match = _TOKEN.fullmatch(token)
        if match is not None and match[1] == LETTERS[self._request.verb]:
            row, spec, until = self._router["formats"].get(match[2]), match[4] or "", match[5] or ""
            if row is not None and (spec == "" or oai_name.is_set(spec)):
                chain = self._list(row[match[1]], spec)
                number = chain.find(int(match[3]), until=until) if chain else None
                if chain is not None and number is not None:
                    return chain, number, until
        raise refusal()


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
