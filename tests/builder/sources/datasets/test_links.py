"""Typed links: the header, sets of links in both forms, and texts that are made to be slow."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources.datasets.platforms.hubs.huggingface import read_linked_pages
from builder.sources.datasets.platforms.pages.links import (
    WebLink,
    is_same,
    parse_header,
    parse_linkset,
)
from builder.sources.datasets.protocols import ApiAnswer, FilesetError
from tests.builder.sources.datasets.pages import Pages

PAGE = "https://example.org/set/1"
CSV = WebLink("item", "https://example.org/a,b;c.csv", PAGE, "text/csv")


@pytest.mark.parametrize(
    "header",
    [
        '</a,b;c.csv>; rel="item"; type="text/csv"',
        "</a,b;c.csv> ;\r\n rel=item ;type=Text/CSV,",
        '</a,b;c.csv>; title="a \\"b\\", <c>; rel=next"; rel=ITEM; rel=next; type="text/csv;h=1"',
        'nonsense, </a,b;c.csv>; crossorigin; rel="item"; type=text/csv',
    ],
)
def test_a_link_is_found_in_each_form(header: str) -> None:
    assert list(parse_header(header, PAGE)) == [CSV]


def test_a_link_may_have_several_types_and_another_context() -> None:
    header = '<b>; rel="item next"; anchor="/set/2", <http://[>; rel=item, <c>'
    assert list(parse_header(header, PAGE)) == [
        WebLink("item", "https://example.org/set/b", "https://example.org/set/2"),
        WebLink("next", "https://example.org/set/b", "https://example.org/set/2"),
    ]


def test_a_set_of_links_is_read_in_json() -> None:
    document = {
        "linkset": [
            {
                "anchor": PAGE,
                "item": [{"href": CSV.target, "type": "text/csv", "title*": [{"value": "x"}]}],
                "license": [{"href": "/licence"}, {"no": "href"}],
            },
            {"describedby": [{"href": "meta.json"}]},
        ]
    }
    assert list(parse_linkset(document, "https://example.org/links")) == [
        CSV,
        WebLink("license", "https://example.org/licence", PAGE),
        WebLink("describedby", "https://example.org/meta.json", "https://example.org/links"),
    ]


@pytest.mark.parametrize("document", [None, [], {}, {"linkset": {}}, {"linkset": ["x"]}])
def test_another_document_is_no_set_of_links(document: Any) -> None:
    with pytest.raises(FilesetError, match="platform-bad-response"):
        list(parse_linkset(document, PAGE))


@given(st.text(alphabet='<>;,="\\ a\n', max_size=60))
def test_any_text_is_a_header(header: str) -> None:
    for one in parse_header(header, PAGE):
        assert one.target.startswith("http")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "unit", ["<", "<a>", '<a>;x="', '<a>;x="\\', "<a>;rel", "<a>; ", ",", " ", '<a>;="', ';x="']
)
def test_what_is_made_to_be_slow_is_not(unit: str) -> None:
    # What grows by squares takes hours with a text of that size.
    assert not list(parse_header(unit * ((1 << 18) // len(unit)), PAGE))


def test_scheme_and_a_last_slash_do_not_make_another_page() -> None:
    assert is_same("http://Example.org/a/#top", "https://example.org/a")
    assert not is_same("https://example.org/a?b=1", "https://example.org/a")
    assert not is_same("https://[", "https://example.org/a")


def test_pages_are_followed_by_the_header_on_their_own_host() -> None:
    def page(body: bytes, link: str = "") -> ApiAnswer:
        return ApiAnswer(url="", status=200, body=body, headers={"link": link} if link else {})

    api = Pages({PAGE: page(b"[1]", '<?p=2>; rel="next"'), f"{PAGE}?p=2": page(b"[2]")})
    assert list(read_linked_pages(api, PAGE, ("example.org",))) == [[1], [2]]
    for link, status in (
        ('<https://example.net/>; rel="next"', "platform-bad-response"),
        (f'<{PAGE}>; rel="next"', "platform-error"),
        ('<?p=3>; rel="next"', "incomplete-manifest"),
    ):
        with pytest.raises(FilesetError, match=status):
            list(read_linked_pages(Pages({PAGE: page(b"[1]", link)}), PAGE, ("example.org",)))
