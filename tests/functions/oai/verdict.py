"""Whether an answer is one of those that the model of the protocol calls right."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from lxml import etree

from tests.functions.oai import protocol
from tests.functions.oai.client import BASE, Page
from tests.functions.oai.protocol import Outcome, Record, Repository
from tests.functions.oai.validity import DC, OAI
from tests.functions.oai.world import World

_CALLED = {"ListSets": "set", "ListRecords": "record", "ListIdentifiers": "header"}


def judge(page: Page, outcomes: Sequence[Outcome], world: World) -> None:
    """Hold that a valid document is one of the outcomes."""
    told = (set(page.codes), page.request)
    right = [o for o in outcomes if o.allows(told[0]) and dict(o.attributes) == told[1]]
    assert right, f"told {told}, right are only {[*outcomes]}"
    assert page.text("request") == [BASE]
    if page.codes:
        assert all(page.text("error")), "an error without a message"
        return
    verb = page.request["verb"]
    content = right[0].content
    if verb == "Identify":
        _identify(page, world.description)
        return
    assert content is not None
    if verb == "ListMetadataFormats":
        prefixes = page.text("metadataPrefix")
        assert len(prefixes) == len(set(prefixes)), f"something twice: {prefixes}"
        assert set(prefixes) == content
    elif verb == "GetRecord":
        (record,) = content
        _record(page.root.findall(f"{OAI}GetRecord/*"), {record.identifier: record}, page.request)
    else:
        _listed(page, verb, content, world)


def _identify(page: Page, description: Repository) -> None:
    assert page.text("baseURL") == [BASE]
    assert page.text("protocolVersion") == ["2.0"]
    assert page.text("earliestDatestamp") == [description.earliest]
    assert page.text("deletedRecord") == ["persistent"]
    assert page.text("granularity") == ["YYYY-MM-DDThh:mm:ssZ"]
    assert page.text("adminEmail")


def _listed(page: Page, verb: str, content: frozenset, world: World) -> None:
    """Hold that a page has of its list (or what is left of it) as much as it may, and the rest."""
    token = page.request.get("resumptionToken")
    rest = None if token is None else world.given[token]
    before = 0 if rest is None else rest.before
    elements = page.root.findall(f"{OAI}{verb}/{OAI}{_CALLED[verb]}")
    assert len(elements) == min(world.size, len(content))
    if verb == "ListSets":
        told = [str(e.findtext(f"{OAI}setSpec")) for e in elements]
        assert all(e.findtext(f"{OAI}setName") for e in elements)
        assert len(set(told)) == len(told)
        assert set(told) <= content
    else:
        prefix = {"metadataPrefix": rest.prefix} if rest else {}
        _record(elements, {r.identifier: r for r in content}, {**page.request, **prefix})
    more = len(content) > world.size
    assert bool(page.next) == more
    assert (page.token is not None) == (more or before > 0)
    if page.token is not None:
        assert page.token.get("cursor") == str(before)
        assert page.token.get("completeListSize") == str(before + len(content))
        assert len(page.next) < 200


def _record(
    elements: Sequence[etree._Element], records: Mapping[str, Record], asked: Mapping[str, str]
) -> None:
    """Hold that elements are of those records, each once, in the format that was asked for."""
    names = []
    for element in elements:
        header = element if element.tag == f"{OAI}header" else element.find(f"{OAI}header")
        assert header is not None
        names.append(str(header.findtext(f"{OAI}identifier")))
        record = records[names[-1]]
        assert header.findtext(f"{OAI}datestamp") == record.datestamp
        assert header.get("status") == ("deleted" if record.deleted else None)
        specs = [str(e.text) for e in header.findall(f"{OAI}setSpec")]
        assert len(set(specs)) == len(specs)
        # An item of a set may be told to be in those above it, too (2.5, header).
        above = {a for s in record.sets for a in accumulate(s.split(":"), "{}:{}".format)}
        assert record.sets <= set(specs) <= above
        if element is not header:
            metadata = element.find(f"{OAI}metadata")
            assert (metadata is None) == record.deleted
            if metadata is not None:
                assert metadata.findtext(f".//{DC}type") == asked["metadataPrefix"]
                assert metadata.findtext(f".//{DC}title")
    assert len(set(names)) == len(names)


def right(page: Page, ask: protocol.Ask, world: World) -> None:
    """Hold that the answer to `ask` is right; a failure tells the request."""
    try:
        judge(page, protocol.expected(ask, world.description, world.given), world)
    except AssertionError as failure:
        raise AssertionError(f"{ask}\n{failure}") from failure
