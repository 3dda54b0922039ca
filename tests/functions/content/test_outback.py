"""What OutbackCDX's clients ask: pywb, OpenWayback, Heritrix, and its own integration tests.

Its tests add captures of nla.gov.au, example.com and redirtest.com; these are published here.
"""

import json
import re
from collections.abc import Iterator
from urllib.parse import quote_plus, urlencode
from xml.etree import ElementTree as ET

import pytest

from functions.config import configuration
from functions.content import outback
from functions.http.http_message import Call, Reply
from tests.functions.content.test_cdx import BASE, Index, indexed, taken

FILE = "NLA-AU-CRAWL-000-20050614070144-00003-crawling016.archive.org"
DIGEST = "AKMCCEPOOWFMGGO5635HFZXGFRLRGWIX"
HTML = {"content_mime_type": "text/html", "content_digest": DIGEST, "warc_filename": FILE}
REDIRECTS = (
    ("http://redirtest.com/", 301, "https://www.redirtest.com/"),
    ("https://redirtest.com/", 301, "https://www.redirtest.com/"),
    ("http://www.redirtest.com/", 301, "https://www.redirtest.com/"),
    ("https://www.redirtest.com/", 200, None),
    ("https://www.redirtest.com/", 307, "https://www.newsite.com/"),
)
PAGES = [
    *(taken("http://nla.gov.au/", f"{y}-06-14T07:01:59Z", **HTML) for y in range(2005, 2010)),
    *(taken("http://example.com/", f"{y}-06-14T07:01:59Z", **HTML) for y in (2003, 2004)),
    taken("http://nla.gov.au/a b/<1>", "2006-01-01T00:00:00Z", **HTML),
    taken("http://nla.gov.au/none", None, **HTML),
    taken(
        "http://nla.gov.au/q",
        "2021-02-03T11:51:19Z",
        fetch_method="POST",
        fetch_body="x=1&y=2",
        url_surtkey="au,gov,nla)/q?__wb_method=post&x=1&y=2",
        **HTML,
    ),
    *(
        taken(url, f"2017-08-19T04:03:3{n}Z", fetch_status=status, fetch_redirect=to, **HTML)
        for n, (url, status, to) in enumerate(REDIRECTS)
    ),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with indexed(tmp_path_factory.mktemp("outback"), PAGES) as index:
        yield index


def ask(index: Index, query: str, lines: int = 10_000) -> Reply:
    settings = configuration.parse("", {"SHEAF_CONTENT_LINES": str(lines)})
    call = Call("GET", BASE, "/cdx/outback", query)
    return outback.reply(call, index.search, index.manifest, settings)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("url=nla.gov.au", "2005 2006 2007 2008 2009"),
        ("url=nla.gov.au&sort=reverse&limit=2", "2009 2008"),
        ("url=nla.gov.au&closest=20070614&sort=closest&limit=3", "2007 2006 2008"),
        ("url=nla.gov.au&closest=&sort=closest&limit=1", "2005"),
        ("url=nla.gov.au&from=2006&to=20071231235959999", "2006 2007"),
        ("url=nla.gov.au&limit=1&accesspoint=public&gzip=x&offset=3", "2005"),
        ("url=nla.gov.au&filter=!timestamp:200[5-8].*", "2009"),
        ("url=nla.gov.au&filter=~timestamp:20060", "2006"),
        ("url=nla.gov.au&filter=~!timestamp:20060&limit=2", "2005 2007"),
        ("url=nla.gov.au&filter=!status:[45]..&collapseToFirst=timestamp:3", "2005"),
        ("url=nla.gov.au/*", "2005 2006 2007 2008 2009 2006 2021"),
        ("url=nla.gov.au/a&matchType=prefix", "2006"),
        ("url=gov.au&matchType=domain&filter=mimetype:text/html&limit=1", "2005"),
        ("url=nla.gov.au&matchType=HOST&limit=1&sort=DEFAULT", "2005"),
        ("url=nla.gov.au/none&matchType=range&limit=2", "2021 2003"),
        ("url=nla.gov.au/q&method=POST&requestBody=x%3D1%26y%3D2", "2021"),
        ("url=nla.gov.au/q", ""),
        ("url=redirtest.com&omitSelfRedirects=true&filter=status:...", "2017 2017"),
        ("url=redirtest.com&omitSelfRedirects=false", "2017 2017 2017 2017 2017"),
    ],
)
def test_lines(index: Index, query: str, expected: str) -> None:
    reply = ask(index, query)
    assert reply.status == 200, reply.body
    lines = reply.body.decode().splitlines()
    assert " ".join(line.split(" ")[1][:4] for line in lines) == expected
    assert {len(line.split(" ")) for line in lines} <= {11}


def test_outputs(index: Index) -> None:
    query = "url=http://nla.gov.au/&limit=1"
    (line,) = ask(index, query).body.decode().splitlines()
    values = ["au,gov,nla)/", "20050614070159", "http://nla.gov.au/", "text/html", "200", DIGEST]
    assert line.split(" ")[:8] == [*values, "-", "-"]
    assert line.endswith(FILE)
    ((*row,),) = json.loads(ask(index, f"{query}&output=json").body)
    assert [str(value) for value in row] == line.split(" ")
    assert (row[1], row[4]) == (20050614070159, 200)
    fields = "fl=original,statuscode,redirecturl"
    assert json.loads(ask(index, f"{query}&output=json&{fields}").body) == [[values[2], 200, "-"]]
    assert b' {"url": "http://nla.gov.au/"' in ask(index, f"{query}&output=cdxj").body
    assert ask(index, f"{query}&output=other").body.decode().strip() == line
    assert json.loads(ask(index, "url=nowhere.org&output=json").body) == []


def test_a_long_list_goes_on(index: Index) -> None:
    query, stamps = "url=nla.gov.au&filter=~timestamp:0614&method=GET", []
    while query:
        reply = ask(index, query, 2)
        stamps += [line.split(" ")[1][:4] for line in reply.body.decode().splitlines()]
        following = re.search(r"\?(.*)>", reply.headers.get("Link", ""))
        query = following[1] if following else ""
    assert stamps == ["2005", "2006", "2007", "2008", "2009"]


@pytest.mark.parametrize(
    ("words", "more", "expected"),
    [
        ("type:urlquery url:URL", {}, (5, 5, "2005 2006 2007 2008 2009")),
        ("url:URL limit:2 offset:0", {}, (2, 5, "2005 2006")),
        ("type:urlquery url:URL", {"count": 3, "start_page": 1}, (3, 5, "2005 2006 2007")),
        ("type:urlquery url:URL", {"count": 3, "start_page": 2}, (2, 5, "2008 2009")),
        ("limit:1 type:urlquery url:URL startdate:2006 enddate:2007", {}, (1, 2, "2006")),
    ],
)
def test_xml(
    index: Index, words: str, more: dict[str, int], expected: tuple[int, int, str]
) -> None:
    asked = words.replace("URL", quote_plus("http://nla.gov.au/"))
    reply = ask(index, urlencode({"q": asked, **more}))
    root = ET.fromstring(reply.body)
    numbers = (int(root.findtext(f"request/num{n}") or 0) for n in ("returned", "results"))
    dates = [element.text or "" for element in root.iterfind("results/result/capturedate")]
    assert (*numbers, " ".join(date[:4] for date in dates)) == expected
    assert root.findtext("results/result/file") == FILE
    assert root.findtext("request/resultstype") == "resultstypecapture"


def test_xml_of_a_prefix_and_of_what_is_not_there(index: Index) -> None:
    def read(words: str, **more: int) -> ET.Element:
        return ET.fromstring(ask(index, urlencode({"q": words, **more}), 6).body)

    prefix = "type:prefixquery url:nla.gov.au%2F"
    cut = read(prefix, count=2).findall("results/result/numcaptures")
    assert [number.text for number in cut] == ["5"]  # of the next one not all were read
    results = read(prefix).findall("results/result")
    assert [result.findtext("numcaptures") for result in results] == ["5", "1", "1"]
    assert results[0].findtext("numversions") == "1"
    assert results[1].findtext("originalurl") == "http://nla.gov.au/a%20b/<1>"
    closest = read("type:urlquery url:nla.gov.au date:20070614").findall("results/result[closest]")
    assert [result.findtext("capturedate") for result in closest] == ["20070614070159"]
    assert read("type:urlquery url:nowhere.org").findtext("error/title") == (
        "Resource Not In Archive"
    )
    assert read("type:other url:a.cz").findtext("error/title") == "Unsupported query type"


BAD = """matchType=exact url=a.cz&matchType=other url=a.cz&from=x url=a.cz&filter=status
    url=a.cz&filter=none:x q=type:urlquery q=url:a.cz+limit:x q=url:a.cz+offset:99999+limit:2"""


@pytest.mark.parametrize("query", BAD.split())
def test_what_is_no_query(index: Index, query: str) -> None:
    reply = ask(index, query)
    assert (reply.status, reply.body.count(b"\n")) == (400, 1)
