"""What is a valid answer: by schemas of our own and, where they are at hand, the official ones."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from lxml import etree

HERE = Path(__file__).parents[2]
OFFICIAL = HERE.parents[1] / "shared" / "data" / "xsd" / "oai"
MODS = OFFICIAL.parent / "common"
DATACITE = OFFICIAL.parent / "datacite" / "kernel-4.6"
MADE = HERE / "schemas"
OWN = HERE.parent / "templates" / "schemas"
OAI = "{http://www.openarchives.org/OAI/2.0/}"
KERNEL = "{http://datacite.org/schema/kernel-4}"
DC = "{http://purl.org/dc/elements/1.1/}"

_OFFICIAL = {
    "http://www.openarchives.org/OAI/2.0/": "OAI-PMH.xsd",
    "http://www.openarchives.org/OAI/2.0/oai_dc/": "oai_dc.xsd",
    "http://www.openarchives.org/OAI/2.0/oai-identifier": "oai-identifier.xsd",
    "http://www.openarchives.org/OAI/2.0/friends/": "friends.xsd",
    "http://www.openarchives.org/OAI/2.0/branding/": "branding.xsd",
    "http://www.loc.gov/mods/v3": "mods.xsd",
    "http://schema.datacite.org/oai/oai-1.1/": "oai_datacite.xsd",
    "http://www.loc.gov/METS/": "mets-1.12.1.xsd",
    "http://www.loc.gov/MARC21/slim": "MARC21slim.xsd",
}
# What no answer of ours has, and libxml2 takes amiss: it stands in derived types a second time.
_TWICE = '<xs:attributeGroup ref="IDAttributeGroup"/>'
_CONTAINERS = tuple(OAI + name for name in ("description", "about", "setDescription"))


class _Offline(etree.Resolver):
    """Answers every address with the file of that name."""

    def resolve(self, url: str, public_id: Any, context: Any) -> Any:
        name = url.rpartition("/")[2]
        if name == "mods.xsd" and (MODS / name).is_file():
            text = (MODS / name).read_text("utf-8").replace(_TWICE, "")
            return self.resolve_string(text, context, base_url=str(MODS / name))
        if name == "xlink.xsd":
            return self.resolve_filename(str(MODS / "xlink-loc.xsd"), context)
        paths = (folder / name for folder in (OWN, MADE, OFFICIAL, DATACITE / "include", MODS))
        path = next((path for path in paths if path.is_file()), None)
        return self.resolve_filename(str(path), context) if path else None


@cache
def own_schema() -> etree.RelaxNG:
    return etree.RelaxNG(etree.parse(str(HERE / "schemas" / "oai-pmh.rng")))


@cache
def own_xsd() -> dict[str, etree.XMLSchema]:
    """Return the schemas that are published with the site, by the namespace of each."""
    trees = [etree.parse(str(path)) for path in sorted(OWN.glob("*.xsd"))]
    return {tree.getroot().get("targetNamespace", ""): etree.XMLSchema(tree) for tree in trees}


@cache
def official_schema() -> etree.XMLSchema | None:
    """Return the protocol's own schemas and ours; None where this machine lacks the former."""
    if not OFFICIAL.is_dir():
        return None
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(_Offline())
    imports = {**_OFFICIAL}
    for path in OWN.glob("*.xsd"):
        imports[etree.parse(str(path)).getroot().get("targetNamespace", "")] = path.name
    lines = (f'<import namespace="{n}" schemaLocation="{f}"/>' for n, f in imports.items())
    driver = f'<schema xmlns="http://www.w3.org/2001/XMLSchema">{"".join(lines)}</schema>'
    return etree.XMLSchema(etree.fromstring(driver, parser, base_url=str(OFFICIAL / "all.xsd")))


@cache
def datacite_schema() -> etree.XMLSchema | None:
    """Return DataCite's own schema; None where this machine lacks it."""
    if not DATACITE.is_dir():
        return None
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(_Offline())
    return etree.XMLSchema(etree.parse(str(DATACITE / "metadata.xsd"), parser))


def valid(xml: bytes) -> etree._Element:
    """Return the root of a document that all schemas at hand accept."""
    assert xml.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n')
    root = etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True))
    schema = own_schema()
    assert schema.validate(root), f"{schema.error_log}\n{xml.decode()[:3000]}"
    for namespace, xsd in own_xsd().items():
        for element in root.iter(f"{{{namespace}}}*"):
            if etree.QName(element.getparent()).namespace != namespace:
                assert xsd.validate(element), f"{xsd.error_log}\n{xml.decode()[:3000]}"
    official = official_schema()
    if official is not None:
        known = _known(root)
        assert official.validate(known), f"{official.error_log}\n{xml.decode()[:3000]}"
    datacite = datacite_schema()
    for resource in root.iter(f"{KERNEL}resource") if datacite is not None else ():
        alone = etree.fromstring(etree.tostring(resource, with_tail=False))
        assert datacite.validate(alone), f"{datacite.error_log}\n{xml.decode()[:3000]}"
    return root


def _known(root: etree._Element) -> etree._Element:
    """Return an answer without the containers of which no XML Schema is at hand.

    The protocol's own asks for a schema of each; for some, communities never gave one that is kept.
    """
    if not any(map(_is_strange, root.iter(*_CONTAINERS))):
        return root
    root = deepcopy(root)
    for container in filter(_is_strange, [*root.iter(*_CONTAINERS)]):
        parent = container.getparent()
        assert parent is not None
        parent.remove(container)
    return root


def _is_strange(container: etree._Element) -> bool:
    known = _OFFICIAL.keys() | own_xsd().keys()
    return any(etree.QName(e).namespace not in known for e in container.iterchildren("*"))


def codes(root: etree._Element) -> list[str]:
    return [e.get("code", "") for e in root.iter(f"{OAI}error")]
