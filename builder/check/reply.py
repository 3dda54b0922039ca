"""Replies: answers as XML, as they are and as a harvester can still read them after repair."""

import re
from dataclasses import dataclass
from email.message import Message
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from builder.check.exchange import Exchange
from builder.sources.harvest import answer
from builder.sources.harvest.errors import Broken
from builder.sources.harvest.page import ListPage

OAI = "http://www.openarchives.org/OAI/2.0/"
DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml\s[^>]*\?>")
_HEAD = re.compile(rb"<(?:html|!doctype\s+html)\b", re.IGNORECASE)
_CHALLENGES = ("cf-mitigated", "x-amzn-waf-action", "x-datadome", "x-sucuri-block")
_CHALLENGE = re.compile(
    rb"just a moment|checking your browser|request rejected|anubis|captcha|access denied"
    rb"|attention required|making sure you're not a bot|incapsula",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class OaiReply:
    """An exchange, number `number` of the visit, and what was read of its body.

    `root` is of the document as it is; None if it is not well-formed, and `fault` says why. `page`
    is what a harvester reads after repair; None if that fails.
    """

    number: int
    exchange: Exchange
    root: Element | None = None
    page: ListPage | None = None
    fault: str = ""

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the errors of the protocol."""
        return () if self.page is None else tuple(code for code, _ in self.page.errors)

    @property
    def is_list(self) -> bool:
        """Whether the reply has content, and no errors."""
        return self.page is not None and not self.page.errors

    @property
    def is_challenge(self) -> bool:
        """Whether a wall or a page for people replied in place of the repository."""
        exchange = self.exchange
        if self.page is not None or not exchange.status:
            return False
        if any(name in exchange.fields for name in _CHALLENGES) or exchange.status == 202:
            return True
        is_page = _HEAD.search(exchange.body[:2000]) is not None
        return is_page and (
            exchange.status == 200 or _CHALLENGE.search(exchange.body[:20_000]) is not None
        )

    def child(self) -> Element | None:
        """Return the element of the verb, if there is one."""
        if self.root is not None:
            for element in self.root:
                if local(element) not in ("responseDate", "request", "error"):
                    return element
        return None


def read_reply(number: int, exchange: Exchange) -> OaiReply:
    """Parse an exchange, strictly and as a harvester does."""
    body, fault = exchange.body, ""
    root: Element | None = None
    for encoding in ("utf-8", None):  # what it declares has a check of its own, E02
        parser = ElementTree.XMLParser(encoding=encoding)
        try:
            parser.feed(body)
            root = parser.close()
        except (ElementTree.ParseError, UnicodeDecodeError, LookupError) as error:
            fault = fault or str(error)
        if root is not None:
            fault = ""
            break
    message = Message()
    message["Content-Type"] = exchange.fields.get("content-type", "")
    charset, page = message.get_content_charset(), None
    try:
        page = answer.page(body, charset)
    except Broken:
        page = answer.take_apart(body, charset) if b"OAI-PMH" in body else None
    if root is not None and local(root) != "OAI-PMH":
        root, page = None, None
    return OaiReply(number, exchange, root, page, fault)


def local(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def text(element: Element | None) -> str:
    """Return the text of an element, "" for None."""
    return "" if element is None else (element.text or "").strip()
