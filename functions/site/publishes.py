"""The page of publishes: what each brought, and the feed of them (RFC 4287)."""

from functions.http import http_message
from functions.http.http_message import Reply
from functions.oai.request import LIST_IDENTIFIERS
from functions.site.page import PageRequest, SitePage
from functions.snapshot import instant, layout
from functions.snapshot.manifest import Sequence

_MANY = 100
_FEED = 50


def show(request: PageRequest) -> SitePage:
    """Return the page of the publishes before the one in the argument `before`."""
    rows, more = _list(request, _MANY)
    root = str(request.parts.configuration["identify.data_url"]).rstrip("/")
    values = {
        "rows": rows,
        "more": request.address.page("/publishes", before=more) if more else None,
        "data_url": root,
        "views": f"{root}/{layout.views_key(request.manifest.snapshot)}" if root else "",
        "feed": request.address.page("/publishes.atom"),
    }
    return SitePage("publishes.html", request.text("publishes.title"), values)


def feed(request: PageRequest) -> Reply:
    """Return the Atom feed of the newest publishes."""
    rows, _ = _list(request, _FEED)
    configuration, address = request.parts.configuration, request.address
    variables = {
        "t": request.text,
        "number": request.text.write_number,
        "root": address.root,
        "rows": rows,
        "updated": request.manifest.effective,
        "name": configuration["repository.name"],
        "emails": configuration["repository.admin_emails"],
        "page": address.page,
    }
    body = request.parts.write("publishes.xml", variables)
    return Reply(200, "application/atom+xml", body, digest=http_message.document_digest(body))


def _list(request: PageRequest, many: int) -> tuple[list[dict[str, object]], int | None]:
    """Return publishes, newest first, and the number before which the list continues."""
    before = request.number("before")
    found = [s for s in request.manifest.sequences if not before or s.number < before]
    rows = [_describe(request, one) for one in reversed(found[-many:])]
    return rows, found[-many].number if len(found) > many else None


def _describe(request: PageRequest, one: Sequence) -> dict[str, object]:
    stamp = instant.to_text(one.effective)
    given = {"metadataPrefix": "oai_dc", "from": stamp, "until": stamp}
    return {
        "number": one.number,
        "effective": one.effective,
        "records": one.last - one.first + 1,
        "current": sum(one.records.values()),
        "kinds": {kind: n for kind, n in one.records.items() if n},
        "view": request.address.answer(LIST_IDENTIFIERS, **given),
        "raw": request.address.request(LIST_IDENTIFIERS, **given),
    }
