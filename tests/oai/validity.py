"""What is a valid answer: by schemas of our own and, where they are at hand, the official ones."""

from functools import cache
from pathlib import Path
from typing import Any

from lxml import etree

HERE = Path(__file__).parents[1]
OFFICIAL = HERE.parents[1] / "shared" / "data" / "xsd" / "oai"
SHIPPED = HERE.parent / "templates" / "schemas"
OAI = "{http://www.openarchives.org/OAI/2.0/}"
DC = "{http://purl.org/dc/elements/1.1/}"

_DRIVER = b"""<schema xmlns="http://www.w3.org/2001/XMLSchema">
<import namespace="http://www.openarchives.org/OAI/2.0/" schemaLocation="OAI-PMH.xsd"/>
<import namespace="http://www.openarchives.org/OAI/2.0/oai_dc/" schemaLocation="oai_dc.xsd"/>
<import namespace="http://www.openarchives.org/OAI/2.0/oai-identifier"
 schemaLocation="oai-identifier.xsd"/>
<import namespace="urn:x-sheaf:set:1" schemaLocation="set.xsd"/>
</schema>"""


class _Offline(etree.Resolver):
    """Answers every address with the file of that name."""

    def resolve(self, url: str, public_id: Any, context: Any) -> Any:
        for folder in (OFFICIAL, SHIPPED):
            path = folder / url.rpartition("/")[2]
            if path.is_file():
                return self.resolve_filename(str(path), context)
        return None


@cache
def own_schema() -> etree.RelaxNG:
    return etree.RelaxNG(etree.parse(str(HERE / "schemas" / "oai-pmh.rng")))


@cache
def official_schema() -> etree.XMLSchema | None:
    """Return the protocol's own schemas, or None where this machine does not have them."""
    if not OFFICIAL.is_dir():
        return None
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(_Offline())
    return etree.XMLSchema(etree.fromstring(_DRIVER, parser, base_url=str(OFFICIAL / "all.xsd")))


def valid(xml: bytes) -> etree._Element:
    """Return the root of a document that all schemas at hand accept."""
    assert xml.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n')
    root = etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True))
    schema = own_schema()
    assert schema.validate(root), f"{schema.error_log}\n{xml.decode()[:3000]}"
    official = official_schema()
    if official is not None:
        assert official.validate(root), f"{official.error_log}\n{xml.decode()[:3000]}"
    return root


def codes(root: etree._Element) -> list[str]:
    return [e.get("code", "") for e in root.iter(f"{OAI}error")]
