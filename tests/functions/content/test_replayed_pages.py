"""Pages of real archives: each of their references leads to the archive, or nowhere.

What is left of them is read by Python's own parser, and not by the one that rewrites.
"""

import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from warcio.archiveiterator import ArchiveIterator

from functions.content.replay.address import ReplayAddresses
from functions.content.replay.page_bytes import KINDS, PageBytes
from tests.e2e.conftest import ARCHIVES, SHARED

pytestmark = pytest.mark.skipif(
    not ARCHIVES.is_dir(), reason="replay of real pages is NOT proved here: no ../shared/data"
)
NAMES = ("servo-Sina__*", "webarchivcz__*", "js-wacz__*", "pywb__iana*", "ukwa-disc__*", "nas__*")
URLS = {"href", "src", "action", "data", "poster", "background", "xlink:href", "longdesc", "cite"}
ADDRESSES = ReplayAddresses("https://a.example.org", "https://a.example.org")
INSIDE = re.compile(
    r"/web/20\d{12}(?:[a-z]{2}_)?/|#|$|data:image/|(?!https?:|ftp:|data:|javascript:)[a-z0-9]+:"
)
_CSS = re.compile(r"(?:url\(\s*|@import\s+)[\"']?([^\"')\s]*)", re.IGNORECASE)


class References(HTMLParser):
    """Counts references by where they lead; `outside` are those that leave the archive."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.outside: list[tuple[str, str]] = []
        self._is_style = self._is_text = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_style = tag == "style"
        if self._is_text:
            return
        self._is_text = tag == "textarea"  # what is in it is text to browsers
        for name, value in attrs:
            text = (value or "").strip()
            if name in URLS and not (name == "data" and tag != "object"):
                self._add(tag, text)
            elif name == "srcset":
                for candidate in re.split(r",\s+", text):
                    self._add(tag, candidate.split()[0] if candidate.split() else "")
            elif name == "style":
                self._add_css(text)
            assert not (tag == "base" and name in ("href", "target"))

    def handle_endtag(self, tag: str) -> None:
        self._is_text = self._is_text and tag != "textarea"

    def handle_data(self, data: str) -> None:
        if self._is_style:
            self._add_css(re.sub(r"/\*.*?\*/", "", data, flags=re.DOTALL))
        self._is_style = False

    def _add_css(self, text: str) -> None:
        for match in _CSS.finditer(text):
            self._add("css", match[1])

    def _add(self, tag: str, text: str) -> None:
        self.counts["archive" if text.startswith("/web/") else "other"] += 1
        if not INSIDE.match(text):
            self.outside.append((tag, text))


def pages() -> Iterator[PageBytes]:
    paths = [path for name in NAMES for path in sorted((ARCHIVES / "core").glob(name))]
    for path in (*paths, SHARED / "reports" / "people" / "knihovna.warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, arc2warc=True):
                head = record.http_headers if record.rec_type == "response" else None
                media_type = (head and head.get_header("Content-Type")) or ""
                form = KINDS.get(media_type.partition(";")[0].strip().lower())
                if form == "html":
                    url = record.rec_headers.get_header("WARC-Target-URI")
                    yield PageBytes.of(record.content_stream().read(), url, form, media_type)


def test_no_reference_of_a_real_page_leaves_the_archive() -> None:
    counts: Counter[str] = Counter()
    outside: list[object] = []
    for page in pages():
        body = page.rewrite(
            lambda forms, mark, role, written: (
                ADDRESSES.reference("20090501000000", role, next(forms)) + mark
            ),
            lambda target: "_top",
        )
        assert body is not None
        parsed = References()
        parsed.feed(body.decode("latin-1"))
        counts["pages"] += 1
        counts += parsed.counts
        outside += [(page.url, *reference) for reference in parsed.outside]
    assert outside == []
    assert counts["pages"] >= 150
    assert counts["archive"] >= 9_000
