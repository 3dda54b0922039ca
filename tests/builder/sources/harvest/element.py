"""The elements of OAI-PMH that the repository of this machine answers with."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from tests.builder.sources.harvest.provider import Page

OAI = "http://www.openarchives.org/OAI/2.0/"
_XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
_DC = (
    '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" xsi:schemaLocation='
    '"http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd">'
)


@dataclass(frozen=True)
class Item:
    """An item: `about` is the XML of an about container's content, "" for none."""

    identifier: str
    stamp: datetime
    title: str
    sets: tuple[str, ...] = ()
    deleted: bool = False
    about: str = ""

    def is_in(self, set_: str) -> bool:
        return not set_ or any(f"{one}:".startswith(f"{set_}:") for one in self.sets)


def header(item: Item, form: str) -> str:
    status = ' status="deleted"' if item.deleted else ""
    sets = "".join(f"<setSpec>{one}</setSpec>" for one in item.sets)
    return (
        f"<header{status}><identifier>{escape(item.identifier)}</identifier>"
        f"<datestamp>{item.stamp.strftime(form)}</datestamp>{sets}</header>"
    )


def metadata(item: Item, prefix: str) -> str:
    title = escape(item.title)
    if prefix == "marc21":
        return (
            '<record xmlns="http://www.loc.gov/MARC21/slim"><leader>00000nam a2200000 a 4500'
            '</leader><datafield tag="245" ind1="0" ind2="0">'
            f'<subfield code="a">{title}</subfield></datafield></record>'
        )
    return (
        f"{_DC}<dc:title>{title}</dc:title><dc:creator>Nováková, Jana</dc:creator>"
        f"<dc:creator>Ōe</dc:creator><dc:identifier>http://a.cz/{escape(item.identifier)}"
        "</dc:identifier><dc:type>Text</dc:type></oai_dc:dc>"
    )


def record(item: Item, prefix: str, form: str) -> str:
    head = header(item, form)
    if item.deleted:
        return f"<record>{head}</record>"
    about = f"<about>{item.about}</about>" if item.about else ""
    return f"<record>{head}<metadata>{metadata(item, prefix)}</metadata>{about}</record>"


def token(page: "Page") -> str:
    if page.token is None:
        return ""
    size = "" if page.size is None else f' completeListSize="{page.size}"'
    cursor = "" if page.cursor is None else f' cursor="{page.cursor}"'
    return f"<resumptionToken{size}{cursor}>{escape(page.token)}</resumptionToken>"


def error(code: str, text: str) -> str:
    return f"<error code={quoteattr(code)}>{escape(text)}</error>"


def request(url: str, arguments: Mapping[str, str]) -> str:
    given = "".join(f" {name}={quoteattr(value)}" for name, value in arguments.items())
    return f"<request{given}>{url}</request>"


def document(date: str, asked: str, said: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<OAI-PMH xmlns="{OAI}" {_XSI} xsi:schemaLocation="{OAI} {OAI}OAI-PMH.xsd">'
        f"<responseDate>{date}</responseDate>{asked}{said}</OAI-PMH>\n"
    )


def identify(url: str, earliest: str, granularity: str) -> str:
    return (
        f"<Identify><repositoryName>Archive A</repositoryName><baseURL>{url}</baseURL>"
        "<protocolVersion>2.0</protocolVersion><adminEmail>a@archive-a.cz</adminEmail>"
        f"<earliestDatestamp>{earliest}</earliestDatestamp>"
        "<deletedRecord>persistent</deletedRecord>"
        f"<granularity>{granularity}</granularity></Identify>"
    )


def formats(prefixes: Mapping[str, tuple[str, str]]) -> str:
    rows = "".join(
        f"<metadataFormat><metadataPrefix>{prefix}</metadataPrefix><schema>{schema}</schema>"
        f"<metadataNamespace>{namespace}</metadataNamespace></metadataFormat>"
        for prefix, (schema, namespace) in prefixes.items()
    )
    return f"<ListMetadataFormats>{rows}</ListMetadataFormats>"


def sets(names: Mapping[str, str]) -> str:
    rows = "".join(
        f"<set><setSpec>{spec}</setSpec><setName>{escape(name)}</setName></set>"
        for spec, name in names.items()
    )
    return f"<ListSets>{rows}</ListSets>"
