"""A store of several publishes with all that a site must show, and its site."""

from pathlib import Path

import pytest

from builder.commands.demo.samples import FILES
from builder.outputs.site import chain
from tests.builder.conftest import World, capture
from tests.e2e.conftest import make_home

SETTINGS = {
    "SHEAF_PUBLISH_SITE": "true",
    "SHEAF_PAGES_RECORDS": "4",
    "SHEAF_PAGES_IDENTIFIERS": "5",
    "SHEAF_PAGES_SETS": "6",
}
STATIC = """<Repository xmlns="http://www.openarchives.org/OAI/2.0/static-repository"
 xmlns:oai="http://www.openarchives.org/OAI/2.0/">
<Identify><oai:repositoryName>A</oai:repositoryName></Identify>
<ListMetadataFormats/>
<ListRecords metadataPrefix="oai_dc"><oai:record><oai:header>
<oai:identifier>oai:arXiv:1</oai:identifier><oai:datestamp>2001-12-14</oai:datestamp></oai:header>
<oai:metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Bees</dc:title></oai_dc:dc></oai:metadata>
</oai:record><oai:record><oai:header>
<oai:identifier>oai:arXiv:3</oai:identifier><oai:datestamp>2001-12-14</oai:datestamp></oai:header>
<oai:metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Ants</dc:title></oai_dc:dc></oai:metadata>
</oai:record></ListRecords>
<ListRecords metadataPrefix="y"><oai:record><oai:header>
<oai:identifier>oai:arXiv:1</oai:identifier><oai:datestamp>2001-12-14</oai:datestamp></oai:header>
<oai:metadata><y xmlns="urn:y"><record a="/>"></record><record>
<header>
<identifier>oai:arXiv:3</identifier></header></record></y></oai:metadata></oai:record></ListRecords>
<ListRecords metadataPrefix="x"><oai:record><oai:header>
<oai:identifier>oai:arXiv:1</oai:identifier><oai:datestamp>2001-12-14</oai:datestamp></oai:header>
<oai:metadata><x xmlns="urn:x"><record>
<header>
<identifier>oai:arXiv:2</identifier></header></record><!-- </record> --><y z=">"/></x>
</oai:metadata></oai:record></ListRecords>
</Repository>"""
"""Items in some formats only, of which two have what looks like another item's record."""


def make_site_world(folder: Path) -> World:
    """Return a store of four publishes with a site: captures, records, one in some formats only.

    Of its sets, some share pages (short and dense ones), one has its own, and one was left by an
    item.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "_MOST_REQUESTS", 1.3)  # so few pages are all dense otherwise
        return _make_world(folder)


def _make_world(folder: Path) -> World:
    home = make_home(folder / "home")
    world = World(home.folder / "store")
    world.add([capture(n, title=f"\u010d \U0001f41d <{n}> & 'it'") for n in range(20)], **SETTINGS)
    static = home.folder / "static.xml"
    static.write_text(STATIC)
    for path in (FILES / "books.mrc", static, FILES / "RePEc"):
        done = home("ingest", path)
        assert done.code == 0, done.err
    world.clock.sleep(3600)
    world.publish(**SETTINGS)
    world.clock.sleep(86_400)
    again = [capture(n, title="again") for n in (3, 25)]
    left = capture(4, title="left", sets=("domain:cz:example:h4", "mime:application:pdf"))
    world.add([*again, left], ("a.b",), **SETTINGS)
    world.clock.sleep(60)
    world.withdraw("oai:archive.example.org:" + capture(7).identity, **SETTINGS)
    world.clock.sleep(3600)
    return world
