"""Links of templates to the full texts that were gathered: which are made, and when."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from builder.obi.content import FILE, Incidence, Redirect
from builder.obi.run import Purpose, claim
from tests.builder.obi.archive import PREFIX, Repec
from tests.builder.obi.logs import describe, put
from tests.functions.content.test_holding import WRITTEN, gather, handle, named, read, record_of
from tests.functions.oai.client import Client

NAME = f"{PREFIX}{handle(1)}"
ORIGIN = "http://a.org/one.pdf"
FAR, FARTHER = "https://b.org/č,1.pdf", "https://c.org/2.pdf"
ADDRESS = "https://sheaf.example.org/content/{identifier}?file={file}"
LINK = f"https://sheaf.example.org/content/{NAME}?file={quote(WRITTEN, safe='')}"


@pytest.fixture
def repec(tmp_path: Path) -> Iterator[Repec]:
    world = Repec(tmp_path / "store")
    world.take(a=named())
    world.publish()
    yield world
    world.close()


def redirected(repec: Repec, target: str, data: bytes) -> None:
    """Have a run find that the file's URL leads to another one."""
    repec.clock.sleep(100)
    run = claim(repec.store, Purpose("gather", "web", str(repec.clock.now)), repec.run_outside)
    run.turn()
    where = put(run, target, data)
    told = run.redirect(ORIGIN, target, 302, where)
    run.commit(
        [
            describe(where, data, target, FILE),
            Incidence(id=target, kind=FILE, what="appearance", key=where),
            Redirect(origin=ORIGIN, target=target, status=302, key=told, target_key=where),
        ]
    )


def gathered(repec: Repec, name: str = NAME) -> Any:
    """Return the ids of a template's stored files by URL."""
    record = record_of(repec, name)
    assert record is not None
    return record.fields["gathered"]


def links(client: Client) -> tuple[list[str | None], list[str | None]]:
    """Return the URLs of the last files in AMF, and the relations in Dublin Core."""
    found = []
    for prefix, tag in (("amf", "{*}file/{*}url"), ("oai_dc", "{*}relation")):
        page = client.get("GetRecord", identifier=NAME, metadataPrefix=prefix)
        (metadata,) = page.root.iter("{*}metadata")
        found.append([one.text for one in metadata.iterfind(f".//{tag}")])
    assert found[0][0] == "http://example.org/rugs.pdf"
    return found[0][1:], found[1]


def test_a_stored_file_is_linked_in_amf_and_dublin_core(repec: Repec) -> None:
    with repec.asked(content_address=(ADDRESS,)) as client:
        assert links(client) == ([WRITTEN, "http://a.org/never"], [])
    gather(repec, b"%PDF one")
    assert repec.publish().changed == 1
    with repec.asked(content_address=(ADDRESS,)) as client:
        assert links(client) == ([WRITTEN, LINK, "http://a.org/never"], [LINK])
    with repec.asked(content_address=("https://a.org/{identifier}",)) as client:
        assert links(client)[1] == []  # that address names no file
    with repec.asked() as client:
        assert links(client)[1] == []
    gather(repec, b"%PDF two")
    assert repec.publish().changed == 0
    assert read(repec, NAME, file=WRITTEN) == b"%PDF two"
    repec.take(a=named(title="On Carpets"))
    assert repec.publish().changed == 1
    assert gathered(repec) == {WRITTEN: ORIGIN}


@pytest.mark.thorough
def test_the_link_follows_a_redirect(repec: Repec) -> None:
    redirected(repec, FAR, b"%PDF far")
    assert repec.publish().changed == 1
    assert gathered(repec) == {WRITTEN: FAR}
    assert read(repec, NAME, file=WRITTEN) == b"%PDF far"
    redirected(repec, FAR, b"%PDF other")
    assert repec.publish().changed == 0
    redirected(repec, FARTHER, b"%PDF farther")
    assert repec.publish().changed == 1
    assert gathered(repec) == {WRITTEN: FARTHER}
    gather(repec, b"%PDF its own")
    assert repec.publish().changed == 1
    assert read(repec, NAME, file=WRITTEN) == b"%PDF its own"
    repec.take(a=None)
    repec.publish()
    repec.take(a=named())
    repec.publish()
    assert gathered(repec) == {WRITTEN: ORIGIN}


def test_a_template_that_comes_after_its_file_is_linked_at_once(repec: Repec) -> None:
    gather(repec, b"%PDF one")
    repec.take(b=named(2))
    assert repec.publish().new == 1
    assert gathered(repec) == gathered(repec, f"{PREFIX}{handle(2)}") == {WRITTEN: ORIGIN}


@pytest.mark.thorough
def test_a_withdrawn_template_stays_so_and_is_linked_once_it_is_back(repec: Repec) -> None:
    repec.withdraw(NAME)
    gather(repec, b"%PDF one")
    assert repec.publish().changed == 0
    repec.reinstate(NAME)
    assert gathered(repec) == {WRITTEN: ORIGIN}
    with repec.asked(content_address=(ADDRESS,)) as client:
        assert links(client)[1] == [LINK]
