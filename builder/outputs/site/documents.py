"""The documents of a site besides lists of records, and what its router reads."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from builder.outputs.site.site_lists import SiteSnapshot
from builder.outputs.site.site_state import VERSION, WWW
from functions.http.http_message import OAI_PATH
from functions.kinds import IN_FORMATS
from functions.oai.answer import FormatList, Resumption
from functions.oai.format import SCHEMA_PATH, Format
from functions.oai.provider import identify
from functions.oai.render.schemas import schema_replies
from functions.oai.render.template_filters import clean
from functions.oai.request import IDENTIFY, LIST_FORMATS, LIST_SETS, OAIError, OaiRequest
from functions.oai.request_table import request_table
from functions.oai.set_list import SetListService
from functions.snapshot import instant

REPOSITORY = "/static-repository.xml"
LIVE, _LARGEST = 2000, 64 << 20
"""Live records, and bytes of them, more than which are too many for a static repository."""


def list_documents(snapshot: SiteSnapshot) -> Iterator[tuple[str, bytes]]:
    """Yield the names of the documents, and their content. Raises StoreError."""
    manifest = snapshot.manifest
    answer = identify(snapshot.configuration, manifest)
    yield "identify.xml", snapshot.write((("verb", IDENTIFY),), answer)
    of_formats = (("verb", LIST_FORMATS),)
    yield "formats.xml", snapshot.write(of_formats, FormatList(tuple(snapshot.rows)))
    for kind in manifest.kinds():
        if formats := snapshot.formats.of_kind(kind):
            yield f"formats/{kind}.xml", snapshot.write(of_formats, FormatList(formats))
    yield from _list_sets(snapshot)
    for path, reply in schema_replies(snapshot.renderer.places).items():
        yield WWW + SCHEMA_PATH + path.rpartition("/")[2], reply.body
    repository = _write_repository(snapshot)
    if repository is not None:
        yield WWW + REPOSITORY[1:], repository
    if limit := snapshot.configuration["site.pages"]:
        from builder.outputs.site.people import PeoplePages  # loads the server's pages

        files = frozenset(() if repository is None else (REPOSITORY,))
        yield from PeoplePages(snapshot, limit, files).list_pages()


def _write_repository(snapshot: SiteSnapshot) -> bytes | None:
    """Return the OAI static repository, which gateways serve; None with many records, or none.

    It has no sets and no deletions, and its datestamps are days (Specification for an OAI Static
    Repository, section 3). Its base URL is that at the gateway, which ends with its own address.
    """
    manifest, configuration = snapshot.manifest, snapshot.configuration
    lists, size = list[tuple[Format, str]](), 0
    if sum(manifest.kinds().values()) - manifest.tombstones > LIVE:
        return None
    for list_ in snapshot.list_folders().values():
        texts = list[str]()
        for text in () if list_.is_headers else snapshot.list_live(list_):
            size += len(text)
            if size > _LARGEST:
                return None
            texts.append(text)
        if texts:
            lists.append((list_.format, "".join(texts)))
    if not lists:
        return None
    place = urlsplit(snapshot.base_url.removesuffix(OAI_PATH) + REPOSITORY)
    gateway = configuration["site.gateway"]
    variables = {
        "content": identify(configuration, manifest),
        "base_url": gateway + place.netloc + place.path if gateway else snapshot.base_url,
        "own_url": snapshot.base_url,
        "lists": lists,
    }
    return clean((snapshot.renderer.templates.text("oai/static_repository.xml", variables),))


def _list_sets(snapshot: SiteSnapshot) -> Iterator[tuple[str, bytes]]:
    """Yield the pages of ListSets, none if the repository has no sets."""
    service = SetListService(snapshot.repository, snapshot.configuration)
    request, number = OaiRequest(LIST_SETS, ()), 0
    while True:
        try:
            page = service.page(request, snapshot.reading, snapshot.configuration["pages.sets"])
        except OAIError:
            return
        token = page.resumption.text if page.resumption else ""
        text = f"s,{number + 1}" if token else ""
        arguments = (
            ("verb", LIST_SETS),
            *((("resumptionToken", f"s,{number}"),) if number else ()),
        )
        resumption = Resumption(text, 0, 0) if token or number else None
        yield f"sets/{number}.xml", snapshot.write(arguments, replace(page, resumption=resumption))
        if not token:
            return
        request, number = OaiRequest(LIST_SETS, (), token=token), number + 1


def write_router(snapshot: SiteSnapshot, kinds: Sequence[str], digits: int) -> bytes:
    """Return `router.json`: what a router knows of the site, so that a publish changes only files.

    `kinds` and `digits` are those of the index.
    """
    manifest, configuration = snapshot.manifest, snapshot.configuration
    document = {
        "version": VERSION,
        "base": snapshot.base_url,
        "snapshot": manifest.snapshot,
        "response_date": instant.to_text(snapshot.response_date),
        "earliest": instant.to_text(identify(configuration, manifest).earliest),
        "formats": {
            row.prefix: {
                "r": f"oai/{row.prefix}/r",
                "i": snapshot.headers_folder(row),
                "kinds": [*row.crosswalks],
                "namespace": row.namespace,
                "schema": row.schema_url(snapshot.base_url),
            }
            for row in snapshot.rows
        },
        "kinds": kinds,
        "sifted": sorted(IN_FORMATS & {*kinds}),
        "digits": digits,
        "has_sets": snapshot.has_sets,
        "records": configuration["site.records"],
        **request_table(),
    }
    return json.dumps(document, indent=1).encode()
