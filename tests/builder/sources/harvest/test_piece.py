"""What lies in a record, cut out of it so that it stands alone; and where it came from."""

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from builder.sources.harvest.errors import Broken
from builder.sources.harvest.fragment import (
    Fragment,
    HarvestOrigin,
    cut_fragments,
    is_provenance,
    is_uri,
    origins,
)
from builder.sources.harvest.ingest import Harvest, make_entry, sets
from builder.sources.harvest.repository import find_repository
from builder.sources.harvest.state import Counts, HarvestRun, HarvestState, RunState
from builder.sources.harvest.version import HarvestedRow
from functions.snapshot import oai_name
from tests.extent import examples

OAI = "http://www.openarchives.org/OAI/2.0/"
_PREFIXES = ["", "a", "b", "xsi"]
_URIS = ["urn:1", "http://a.cz/?a&b='", OAI]


@st.composite
def elements(draw: st.DrawFn, scope: dict[str, str], depth: int = 0) -> str:
    """Draw an element of any prefix that is bound by then, with text, children and attributes."""
    own = draw(st.dictionaries(st.sampled_from(_PREFIXES), st.sampled_from(_URIS), max_size=2))
    bound = {**scope, **own}
    prefix = draw(st.sampled_from(sorted(bound)))
    name = f"{prefix}:x" if prefix else "x"
    declared = "".join(f" xmlns{':' if p else ''}{p}={quoteattr(uri)}" for p, uri in own.items())
    attribute = draw(st.sampled_from(["", *(f" {p}:k='/>'" for p in bound if p)]))
    if draw(st.booleans()):
        return f"<{name}{declared}{attribute}/>"
    children = draw(st.lists(elements(bound, depth + 1), max_size=2)) if depth < 2 else []
    text = draw(st.sampled_from(["", "/>", "<!-- <x> -->", "<![CDATA[</x>]]>", "é"]))
    return f"<{name}{declared}{attribute}>{text}{''.join(children)}</{name}>"


def meaning(element: etree._Element) -> bytes:
    """Return an element with its namespaces as they are bound, whatever was declared around it."""
    return bytes(etree.tostring(element, method="c14n", exclusive=True, with_comments=True))


@settings(max_examples=examples(150))
@given(st.data())
def test_what_is_cut_out_means_what_it_meant_within(data: st.DataObject) -> None:
    outer = data.draw(
        st.dictionaries(st.sampled_from(_PREFIXES[1:]), st.sampled_from(_URIS), max_size=3)
    )
    scope = {"": OAI, **outer}
    metadata, about = data.draw(elements(scope)), data.draw(elements(scope))
    declared = "".join(f" xmlns:{p}={quoteattr(uri)}" for p, uri in outer.items())
    record = (
        f'<record xmlns="{OAI}"{declared}><header a=">"/><metadata>\n {metadata} </metadata>'
        f"<about>{about}</about><about/></record>"
    )
    root = etree.fromstring(record)
    found = cut_fragments(record)
    assert found.metadata is not None
    pieces = [found.metadata, *found.about]
    wanted = [one[0] for one in root if len(one) and not one.tag.endswith("header")]
    assert len(pieces) == len(wanted) == 2
    for piece, element in zip(pieces, wanted, strict=True):
        alone = etree.fromstring(piece.text)
        assert meaning(alone) == meaning(element)
        assert (piece.namespace, piece.name) == (
            etree.QName(element).namespace or "",
            etree.QName(element).localname,
        )


@pytest.mark.parametrize("text", ["", "<record>", "<!DOCTYPE record><record/>", "no"])
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(Broken):
        cut_fragments(text)
    for without in ("<record><header/></record>", "<record><metadata/></record>"):
        assert cut_fragments(without).metadata is None


PROVENANCE = "http://www.openarchives.org/OAI/2.0/provenance"


def described(nested: str = "", date: str = "2020-01-02", altered: str = "false") -> str:
    return (
        f'<originDescription harvestDate="{date}" altered="{altered}"><baseURL> http://a.cz/ '
        "</baseURL><identifier>oai:a.cz:1</identifier><datestamp>2019-01-01</datestamp>"
        f"<metadataNamespace>urn:a</metadataNamespace>{nested}</originDescription>"
    )


def told(inner: str) -> tuple[HarvestOrigin, ...]:
    text = f'<provenance xmlns="{PROVENANCE}">{inner}</provenance>'
    piece = Fragment(PROVENANCE, "provenance", text)
    assert is_provenance(piece)
    return origins(piece)


def test_origins_are_told_as_far_as_they_are_right() -> None:
    one = HarvestOrigin("2020-01-02", False, "http://a.cz/", "oai:a.cz:1", "2019-01-01", "urn:a")
    assert told(described()) == (one,)
    assert told(described(described())) == (one, one)
    assert told(described(described(date="yesterday"))) == (one,)
    assert told(described(described(), altered="perhaps")) == ()
    assert told("") == ()
    assert told(described() + described()) == (one,)  # there is one last place
    assert told("<other><originDescription/></other>") == ()
    assert not is_provenance(Fragment("urn:x", "provenance", "<provenance/>"))
    deep = ""
    for _ in range(60):
        deep = described(deep)
    assert len(told(deep)) == 50


@pytest.mark.parametrize(
    ("identifier", "kept"),
    [
        ("oai:b.cz:1", True),
        ("oai:b.cz:a/b?c=d%20e", True),
        ("oai:a.cz:1", False),
        ("oai:A.cz:1", False),
        ("oai:a.cz", True),
        ("OAI:b.cz:1", False),
        ("http://b.cz/1", False),
        ("oai:b.cz:a b", False),
        ("oai:b.cz:é", False),
        ('oai:b.cz:"', False),
        ("oai:", False),
        ("", False),
    ],
)
def test_identifiers_of_others_are_kept_that_are_of_the_scheme(identifier: str, kept: bool) -> None:
    assert (is_uri(identifier) and oai_name.is_foreign(identifier, "a.cz")) == kept


@pytest.mark.parametrize(
    ("specs", "wanted"),
    [
        ((), ["repository:a.cz!3A80"]),
        (("a", "a:b"), ["from:a.cz!3A80:a:b", "repository:a.cz!3A80"]),
        (("é /x",), ["from:a.cz!3A80:!C3!A9!20!2Fx", "repository:a.cz!3A80"]),
        (("",), ["from:a.cz!3A80:!", "repository:a.cz!3A80"]),
    ],
)
def test_sets_are_those_of_the_repository_below_one_of_its_host(
    specs: tuple[str, ...], wanted: list[str]
) -> None:
    assert list(sets("a.cz:80", specs)) == wanted


@pytest.mark.parametrize("about", ["", "<s>t</s>", '<s xmlns="urn:s"/>', '<s xmlns=""/>'])
def test_what_is_in_no_namespace_is_put_into_none(about: str) -> None:
    record = (
        f'<o:record xmlns:o="{OAI}"><o:metadata><d><e/></d></o:metadata>'
        f"<o:about>{about}</o:about></o:record>"
    )
    found = cut_fragments(record)
    assert found.metadata is not None
    within = etree.fromstring(f'<record xmlns="{OAI}">{found.metadata.text}</record>')
    assert [one.tag for one in within.iter()] == [f"{{{OAI}}}record", "d", "e"]
    for piece in found.about:
        (within,) = etree.fromstring(f'<record xmlns="{OAI}">{piece.text}</record>')
        assert etree.QName(within).namespace == (piece.namespace or None)


@pytest.mark.parametrize("depth", [10, 198, 199, 100_000])
def test_elements_lie_so_deep_that_readers_of_a_page_take_them(depth: int) -> None:
    deep = f"<record><metadata>{'<a>' * depth}{'</a>' * depth}</metadata></record>"
    if depth > 198:
        with pytest.raises(Broken, match="more than 200 deep"):
            cut_fragments(deep)
    else:
        found = cut_fragments(deep).metadata
        assert found is not None
        page = (
            "<OAI-PMH><ListRecords><record><metadata>{}</metadata></record></ListRecords></OAI-PMH>"
        )
        etree.fromstring(page.format(found.text))


def test_when_a_row_came_is_told_by_its_run_where_its_page_did_not_tell() -> None:
    run = HarvestRun(7, "complete", "2026-11-20T10:00:00Z", "", None, None, None, Counts())
    state = HarvestState("http://a.cz/oai", "oai_dc", None, "xml", runs=[run])
    state.going = RunState(8, "2026-11-21T10:00:00Z")
    record = "<record><metadata><a/></metadata></record>"
    came = []
    for number in (3, 7, 8):
        row = HarvestedRow("1", "2026-11-01", False, (), {}, record, "", number)
        origin = find_repository({}, state.base_url)
        harvest = Harvest(Path(), state, {}, origin, state.order_runs())
        made = make_entry(harvest, row, cut_fragments(record))
        came.append(made["harvested"])
    assert came == ["2026-11-20T10:00:00Z", "2026-11-20T10:00:00Z", "2026-11-21T10:00:00Z"]
