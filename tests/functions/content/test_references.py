"""References of pages: short ways of the rewriting lead where the long ones do."""

import html
from collections.abc import Iterator
from urllib.parse import urldefrag, urljoin

import pytest

from functions.content.replay.page_bytes import PageBytes

_BASES = (
    *("http://a.cz", "http://a.cz/b//c/d?e", "https://A.cz:80/b/../c/./d;x?y/z", "urn:x"),
    *("http://a.cz/č/d", "ftp://a.cz/b/"),
)
_WRITTEN = (
    *("e", "e/f.png", "../e", "./e", "e/../f", "e//f", ".e", "e.", "e/.f", "/e", "//h/e", "/e//f"),
    *("/../e", "/./e", "?q=1", "e?q=1&r=2", "e?", "/?", "e;", "e;p", "e#f", "#f", "e:f", "%20e"),
    *("http://h.cz", "http://h.cz/", "http://h.cz/?", "http://h.cz/a/../b", "https://h.cz:8/a?b=c"),
    *("HTTP://h.cz/a", "http:e", "http:/e", " e ", "e\nf", "č", "e\\f", "~e/_f-g+h", "http://u@h/"),
)


def rewrite(text: str, base: str) -> str:
    def goal(forms: Iterator[str], mark: str, role: str, written: str) -> str:
        return f"[{next(forms)}{mark}]"

    new = PageBytes(text.encode(), base, "html", "utf-8").rewrite(goal, lambda target: "")
    assert new is not None
    return new.decode()


@pytest.mark.parametrize("base", _BASES)
def test_simple_references_are_resolved_as_all_others(base: str) -> None:
    for written in _WRITTEN:
        text = written.strip().replace("\n", "").replace("\\", "/").replace("č", "%C4%8D")
        url, mark = urldefrag(urljoin(base.replace("č", "%C4%8D"), text))
        if not text.startswith(("#", "e:")):
            shown = html.unescape(rewrite(f'<img src="{written}">', base))
            assert shown == f'<img src="[{url}{mark and "#"}{mark}]">', written


@pytest.mark.parametrize(
    ("before", "is_tag"),
    [
        ("text < & > text", True),
        ("<p class=x id='y>' title=\"<img\">", True),
        ("<TD Width=5 nowrap></TD><br/><p/></p >", True),
        ("</a<script>", True),
        ("</script class='>'>", True),
        ("<p class=x\"y><p class='x'id=y>", True),
        ("<scripts class=x>", True),
        ("<script class=x>", False),
        ("<title>", False),
        ("<p class='", False),
        ("<p class=x><!-- <p id=y>", False),
    ],
)
def test_tags_of_no_interest_end_where_a_browser_ends_them(before: str, is_tag: bool) -> None:
    shown = rewrite(f"{before}<img src=e>", "http://a.cz/")
    assert shown == before + ('<img src="[http://a.cz/e]">' if is_tag else "<img src=e>")
