"""What is read by its shape is what the tree says, of any page; and most pages have that shape."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.harvest import answer, shape
from builder.harvest.errors import Broken
from builder.harvest.page import Page, read
from tests.extent import examples

OAI = "http://www.openarchives.org/OAI/2.0/"
DC = "http://purl.org/dc/elements/1.1/"
OTHER = "urn:other"
TEXT = st.lists(
    st.sampled_from(
        ["é", " ", "T", "a &amp; b", "&#x1F600;", "&#13;", "&lt;dc:title>", "\r\n", "\xa0", ">",
         "/>", "]]", "'", '"', "&quot;&apos;&gt;", "</record".replace("<", "&lt;"), "\t", "𝄞"]
    ),
    max_size=3,
).map("".join)  # fmt: skip
ODD = st.sampled_from(
    ["<!-- <dc:title>no</dc:title> -->", "<![CDATA[</record><record>]]>", "<?pi <record> ?>",
     "<b>x</b>", "<record/>", "<record a='>'>y</record>", "<records/>", "<dc:title>in</dc:title>",
     "<dc:title><dc:creator/></dc:title>", "&nbsp;", "<un:bound/>", "\x0b"]
)  # fmt: skip
ATTRIBUTES = st.sampled_from(
    ["", "", "", ' xml:lang="cs"', " a='>' b=\"/>\"", f' xmlns:dc="{OTHER}"', f' xmlns="{DC}"',
     f" xmlns:d='{DC}'", ' x=" xmlns:dc=&quot;urn:q&quot;"', " ", "\n a = '<'".replace("<", "&lt;"),
     f' xmlns:dc="{DC.replace("p", "&#x70;", 1)}"']
)  # fmt: skip


def mostly(*usual: str, odd: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Draw what is usual, and once in a while what is odd: pages are to be read by their shape."""
    return st.integers(0, 39).flatmap(lambda n: odd if n == 11 else st.sampled_from(usual))


@st.composite
def leaves(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(["dc:title", "dc:title", "dc:creator", "d:date", "title", "dc:no"]))
    attributes = draw(mostly("", ' xml:lang="cs"', " a='>' b=\"/>\"", odd=ATTRIBUTES))
    if draw(st.integers(0, 5)) == 0:
        return f"<{name}{attributes}/>"
    odd = draw(mostly("", odd=ODD))
    return f"<{name}{attributes}>{draw(TEXT)}{odd}</{name}>"


@st.composite
def records(draw: st.DrawFn) -> str:
    status = draw(st.sampled_from(["", "", "", ' status="deleted"', " status=' Deleted\n'"]))
    sets = "".join(draw(st.lists(st.sampled_from(["<setSpec>a</setSpec>", "<setSpec/>", " "]))))
    space = draw(st.sampled_from(["", "\n", "\r\n  ", "text"]))
    head = f"<identifier>{draw(TEXT)}</identifier>{space}<datestamp>{draw(TEXT)}</datestamp>{sets}"
    header = f"<header{status}>{head}</header>"
    if "eleted" in status and draw(st.booleans()):
        return f"<record>{space}{header}</record>"
    root = draw(st.sampled_from(["oai_dc:dc", "oai_dc:dc", "dc", "m:record", "record", "dc:title"]))
    declared = draw(mostly("", f' xmlns:dc="{DC}"', odd=st.just(f' xmlns="{DC}"')))
    inner = space.join(draw(st.lists(leaves(), max_size=4)))
    attributes = draw(mostly("", " a='>'", odd=ATTRIBUTES))
    if declared.strip() and declared.split("=")[0] in attributes:
        attributes = ""
    metadata = f"<{root}{declared}{attributes}>{space}{inner}</{root}>"
    more = draw(st.sampled_from(["", "", "", "<about><x/></about>", metadata]))
    twice = metadata if draw(st.integers(0, 9)) == 0 else ""
    own = draw(st.sampled_from(["", "", "", "", " ", ' id="1"', f' xmlns="{OAI}"']))
    return f"<record{own}>{header}<metadata>{metadata}{twice}</metadata>{more}</record>{space}"


@st.composite
def pages(draw: st.DrawFn) -> bytes:
    dc = draw(mostly(DC, odd=st.just(OTHER)))
    around = (
        f' xmlns="{OAI}" xmlns:dc="{dc}" xmlns:d="{draw(st.sampled_from([DC, OTHER]))}" '
        'xmlns:oai_dc="urn:oai_dc" xmlns:m="urn:m"'
    )
    odd = st.sampled_from(["<?x y?><!-- c -->", "<!DOCTYPE OAI-PMH>", " ", "<?x y?>?"])
    before = draw(mostly("", "\ufeff", '<?xml version="1.0"?>\n', "<?x y??>", odd=odd))
    date = draw(
        mostly("<responseDate>2026</responseDate>", odd=st.sampled_from(["", "<error code='a'/>"]))
    )
    end = draw(mostly("", " ", odd=st.sampled_from(["<!-- e -->", "<?e?>", "x"])))
    bad = draw(mostly("T", odd=st.just("\ud800")))
    token = draw(st.sampled_from(
        ["", "<resumptionToken/>", f"<resumptionToken>{draw(TEXT)}</resumptionToken>",
         '<resumptionToken completeListSize=" 12 " cursor="0">t</resumptionToken>',
         "<resumptionToken cursor='0' completeListSize='&#49;2'>t</resumptionToken>",
         "<resumptionToken a='completeListSize=\"9\"' completeListSize='٣'/>"]
    ))  # fmt: skip
    text = (
        f"{before}<OAI-PMH{around}>{date}<request verb='ListRecords'>x</request>"
        f"<ListRecords>{''.join(draw(st.lists(records(), max_size=4)))}{token}</ListRecords>"
        f"</OAI-PMH>{end}"
    )
    return text.replace("T", bad).encode("utf-8", "surrogatepass")


@settings(max_examples=examples(300), deadline=None)
@given(pages())
def test_a_page_is_what_the_tree_says(data: bytes) -> None:
    found = shape.read(data)
    try:
        wanted = read(data)
    except Broken:
        assert found is None
        return
    assert found is None or found == wanted


def listed(inner: str, root: str = "") -> bytes:
    return (
        f'<?xml version="1.0"?>\n<?xml-stylesheet href="a"?>\n<OAI-PMH xmlns="{OAI}"{root}>\n'
        '<responseDate>2026-11-22T10:00:00Z</responseDate>\n<request verb="a">x</request>\n'
        f'<ListRecords>\n{inner}<resumptionToken completeListSize="7">t</resumptionToken>\n'
        "</ListRecords>\n</OAI-PMH>\n"
    ).encode()


def record(metadata: str) -> str:
    return (
        "<record>\n<header>\n<identifier>oai:a.cz:1</identifier>\n<datestamp>2026-11-22</datestamp>\n"
        f"<setSpec>a</setSpec>\n<setSpec>b</setSpec>\n</header>\n<metadata>\n{metadata}</metadata>\n"
        "</record>\n"
    )


FLAT = (
    f'<o:dc xmlns:o="urn:o" xmlns:dc="{DC}">\n<dc:title xml:lang="cs">A &amp; B</dc:title>\n'
    "<dc:creator/><dc:subject>é</dc:subject>\n</o:dc>\n"
)
DEEP = f'<o:dc xmlns:o="urn:o" xmlns:dc="{DC}"><dc:title>A <b>B</b></dc:title></o:dc>'
MARC = '<record xmlns="urn:marc"><leader>1</leader></record>'
DELETED = (
    '<record><header status="deleted"><identifier>oai:a.cz:2</identifier>'
    "<datestamp>2026-11-22</datestamp></header></record>"
)


@pytest.mark.parametrize(
    "data",
    [
        listed(record(FLAT) + DELETED + record(FLAT)),
        listed(record(FLAT) + record(DEEP)),
        listed(record(MARC)),
        listed(record(FLAT.replace(f' xmlns:dc="{DC}"', "")), f' xmlns:dc="{DC}"'),
        listed(""),
        listed(record(FLAT)).replace(b"\n", b"\r\n"),
    ],
)
def test_pages_of_the_usual_shape_need_no_tree(data: bytes) -> None:
    found = shape.read(data)
    assert found is not None
    assert found == read(data) == answer.page(data, None)


@pytest.mark.parametrize("text", ["<!-- a -->", "<![CDATA[a]]>", "<?a?>"])
def test_what_hides_markup_is_left_to_the_tree(text: str) -> None:
    data = listed(record(FLAT.replace("é", text)))
    assert shape.read(data) is None
    page: Page = answer.page(data, None)
    assert page.entries[0].dc["title"] == ("A & B",)
