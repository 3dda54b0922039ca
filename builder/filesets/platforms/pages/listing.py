"""Lists of JSON documents whose pages are linked by the header `Link` (RFC 8288)."""

from collections.abc import Iterator, Sequence
from typing import Any

from builder.filesets.download.api import parse_document
from builder.filesets.platforms.json_document import walk_pages, wrap_part_errors
from builder.filesets.platforms.pages.links import parse_header
from builder.filesets.protocols import Api


def read_linked_pages(api: Api, first: str, hosts: Sequence[str]) -> Iterator[Any]:
    """Yield the JSON documents of a list whose header `Link` names the next page.

    Only `hosts` are asked. Raises FilesetError as `part_document` and `walk_pages` do.
    """

    def read(url: str) -> tuple[Any, str | None]:
        with wrap_part_errors():
            answer = api.answer(url, hosts=hosts)
        links = parse_header(answer.headers.get("link", ""), answer.url)
        following = next((one.target for one in links if one.relation == "next"), None)
        return parse_document(answer), following

    return walk_pages(first, read)
