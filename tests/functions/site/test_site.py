"""The pages over a repository in memory: each link leads somewhere, and hostile text is text."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from lxml import etree

from functions.content.capture_row import FIELDS, CaptureRow
from functions.kinds import FILESET, KINDS
from functions.oai.format import TEMPLATES
from functions.oai.render.language import read_languages
from functions.site.captures.content_change import MARKED, find_changes, mark_months
from functions.site.chart import draw_bars, draw_line, draw_months
from functions.site.fields import ELSEWHERE
from functions.snapshot.errors import ConfigurationError
from tests.functions.oai.client import Client, Clock, content
from tests.functions.oai.conftest import holding, ten_captures
from tests.functions.reading.memory import Item, MemoryRepository, capture
from tests.functions.site.crawl import ROOT, Crawl

pytestmark = pytest.mark.shared(2)

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;{{ 7*7 }}\u202e\x00"
ATOM = "{http://www.w3.org/2005/Atom}"
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


@pytest.fixture
def crawl() -> Crawl:
    return Crawl(Client(ten_captures(), Clock()))


def test_every_link_leads_to_a_page(crawl: Crawl) -> None:
    visits = crawl.walk()
    kinds = {path.split("?")[0].split("/")[1] for path in visits}
    assert {"", "sets", "record", "records", "publishes", "harvest", "answer"} <= kinds
    assert len([path for path in visits if path.startswith("/record/")]) >= 10


def test_the_first_page_says_what_there_is() -> None:
    """A sentence, plain dates, what is new and large, and a way to each list."""
    items = {
        f"oai:example.org:{n}": capture(
            f"http://{'ab'[n % 2]}.cz/{n}",
            "domain:cz",
            fetch_date=f"20{14 + n}-05-03T10:00:00Z",
            content_mime_type="text/css" if n > 6 else "text/html",
            url_host_name=f"{'ab'[n % 2]}.cz",
            title=f"Page {n}",
        )
        for n in range(9)
    }
    fields = {"set_spec": "collection:x", "name": "Collection x", "captures": 7}
    days = {"first_date": "2014-05-03", "last_date": "2022-05-03"}
    items["oai:example.org:collection"] = Item((), "collection", {**fields, **days})
    crawl = Crawl(Client(holding(items), Clock()))
    front, czech = crawl.read("/"), crawl.read("/?lang=cs")
    assert "This archive holds 9 archived copies from 2 web sites." in front.text
    assert "The copies were captured from 3 May 2014 to 3 May 2022." in front.text
    assert "Obsah archivu: 9 archivních kopií (2 weby)." in czech.text
    assert "Collection" not in czech.text
    newest = front.tree.xpath("//section[@aria-labelledby='newest']//li/a/text()")
    assert newest == [f"Page {n}" for n in (6, 5, 4, 3, 2, 1)]  # no style sheets
    (largest,) = front.tree.xpath("//section[@aria-labelledby='collections']//li")
    assert "7 archived copies, 3 May 2014 – 3 May 2022" in " ".join(largest.itertext())
    assert {*front.tree.xpath("//main//a/@href")} >= {
        "/charts",
        "/sets",
        "/records",
        "/collections",
    }
    described = Client(holding(items), Clock(), identify_eprints={"content": "Pages of bees."})
    assert "Pages of bees." in Crawl(described).read("/").text


def test_lists_have_pages_first_and_what_a_reader_chose() -> None:
    types = ("text/css", "text/html", "image/gif", "application/xhtml+xml")
    items = {
        f"oai:example.org:{n:03}": capture(
            f"http://a.cz/{n:03}",
            "domain:cz",
            fetch_date=f"{2000 + n % 3}-01-01",
            fetch_status=404 if n % 5 == 0 else 200,
            content_mime_type=types[n % 4],
        )
        for n in range(110)
    }
    crawl = Crawl(Client(holding(items), Clock()))

    def read(path: str) -> list[int]:
        numbers: list[int] = []
        while path:
            tree = crawl.read(path).tree
            numbers += [int(a.text[-3:]) for a in tree.xpath("//ul[@class='records']//a")]
            path = next(iter(tree.xpath("//a[@rel='next']/@href")), "")
        return numbers

    pages, others = [*range(1, 110, 2)], [*range(0, 110, 2)]
    for path in ("/records?kind=capture", "/sets?under=domain:cz"):
        assert read(path) == pages + others
        assert read(f"{path}&type=text/css") == [*range(0, 110, 4)]
        chosen = [n for n in pages + others if n % 5 == 0 and n % 3 == 1]
        assert read(f"{path}&status=4xx&year=2001") == read(f"{path}&status=404&year=2001")
        assert read(f"{path}&status=404&year=2001") == chosen
        assert read(f"{path}&status=500") == []
    for wrong in ("status=x", "status=4000", "year=20", "year=MMXX"):
        assert "has four digits" in crawl.read(f"/records?kind=capture&{wrong}", 400).text


def test_formats_are_a_table_as_well(crawl: Crawl) -> None:
    rows = crawl.read_table("/harvest", "formats")
    assert {row["prefix"]: row["schema"] for row in rows}["capture"] == f"{ROOT}/schema/capture.xsd"


def test_the_charts_count_what_there_is(crawl: Crawl) -> None:
    text = crawl.read("/charts").text
    assert "Records 9" in text
    assert "Captures 9 1" in text  # one of them is deleted
    assert "First published: 1 March 2026, 11:00 UTC" in text


def test_a_tombstone_shows_its_header_alone(crawl: Crawl) -> None:
    visit = crawl.read("/record/oai:example.org:05", 410)
    assert visit.tree.xpath("//meta[@name='robots']/@content") == ["noindex"]
    assert "withdrawn or deleted" in visit.text
    assert "Page 5" not in visit.text
    assert not list(visit.tree.iter("script"))[:-1]


def test_what_does_not_exist_is_said_to_be_missing(crawl: Crawl) -> None:
    for path in (
        "/record/oai:example.org:99",
        "/record?id=x",
        "/sets?under=none",
        "/source?name=x",
        "/records?kind=none",
        "/captures?url=a.cz",
    ):
        assert "Not found" in crawl.read(path, 404).text
    for path in ("/records?record=x", f"/sets?under={'x' * 9000}", "/publishes?before=-1"):
        assert "Error" in crawl.read(path, 400).text
    for path in ("//", "/record", "/record/", "/sets/x", "/style.cssx"):
        assert crawl.client.raw(path=path)["statusCode"] in (404,), path
        shown = crawl.client.raw(path=path, headers={"accept": "text/html,*/*;q=0.8"})
        assert shown["statusCode"] == 404
        assert "<h1>Not found</h1>" in content(shown).decode()


def test_arguments_may_have_any_name(crawl: Crawl) -> None:
    for name in ("path", "self", "verb", "lang", "arguments", "root"):
        assert crawl.read(f"/?{name}=x").text
        assert crawl.read(f"/answer?verb=Identify&{name}=x").text


def test_errors_of_the_protocol_say_how_to_mend_the_request(crawl: Crawl) -> None:
    twice = "/answer?verb=ListRecords&metadataPrefix=oai_dc&metadataPrefix=oai_dc"
    assert "badArgument" in crawl.read(twice).text
    for query in (
        "",
        "verb=x",
        "verb=GetRecord&identifier=x&metadataPrefix=oai_dc",
        "verb=ListRecords&resumptionToken=x",
    ):
        visit = crawl.read(f"/answer?{query}")
        assert "The request has an error" in visit.text


def test_an_answer_leads_to_the_next_one() -> None:
    items = {f"oai:example.org:{n}": capture(f"http://a.cz/{n}") for n in range(120)}
    crawl, seen = Crawl(Client(holding(items), Clock())), 0
    path = "/answer?verb=ListIdentifiers&metadataPrefix=oai_dc"
    while path:
        visit = crawl.read(path)
        seen += len([link for link in visit.links() if "/record/" in link])
        following = [a.get("href") for a in visit.tree.iter("a") if a.get("rel") == "next"]
        path = following[0] if following else ""
    assert seen == 120


def hostile() -> MemoryRepository:
    """Return items of every kind with hostile text in each of their fields."""
    samples = {
        "VARCHAR": HOSTILE,
        "VARCHAR[]": [HOSTILE],
        "BIGINT": 7,
        "INTEGER": 7,
        "SMALLINT": 200,
        "BOOLEAN": True,
    }
    jsons = {
        "fields": {"title": [HOSTILE], "author": [{"name": [HOSTILE]}], HOSTILE: [HOSTILE]},
        "files": [{"path": HOSTILE, "mimetype": HOSTILE, "key": "x", "sha256": HOSTILE}],
        "creators": [{"name": HOSTILE}],
        "licences": [{"url": f"javascript:{HOSTILE}"}],
        "bundle": None,
        **{key: [] for key in ("records", "contributors", "related", "withheld")},
        **{
            n: {"different": 1, "most": [{"value": HOSTILE, "captures": 1}]}
            for n in ("host", "media_type", "status")
        },
    }
    items = {}
    for kind, row in KINDS.items():
        fields = {
            c.name: samples[c.type] if c.type in samples else jsons.get(c.name) for c in row.columns
        }
        fields |= {"url": f"javascript:alert(1)//{HOSTILE}", "fetch_date": "2007-11-05"}
        if kind == "collection":
            fields["set_spec"] = "collection:x"
        if kind == "capture":
            fields["refers_to"] = "oai:example.org:file"  # what a publish finds is there
        items[f"oai:example.org:{kind}"] = Item(("collection:x", "a:b"), kind, fields)
    return holding(items)


def test_hostile_text_is_text() -> None:
    client = Client(
        hostile(),
        Clock(),
        repository_name=HOSTILE[:-2],
        sets_names={"a": HOSTILE},
        sets_descriptions={"a": HOSTILE},
        site_imprint=HOSTILE[:-2],
        content_serve=True,
    )
    crawl = Crawl(client)
    visits = crawl.walk()
    records = [p for p in visits if p.startswith("/record/")]  # in two languages
    assert len(records) == 2 * len(KINDS)
    shown = visits["/record/oai:example.org:harvested"].links()  # none came, but it is in oai_dc
    assert any("/answer?verb=GetRecord" in link for link in shown)
    for path in (f"/search?q={HOSTILE}", f"/record?id={HOSTILE}", f"/answer?verb={HOSTILE}"):
        if path.startswith("/search") and client.raw(path="/search")["statusCode"] == 404:
            continue
        crawl.read(path.replace("\x00", ""), 404 if "record" in path else 200)
    for path, visit in visits.items():
        sources = [one.get("src") for one in visit.tree.iter("script", "img") if one.get("src")]
        assert {*sources} <= {"/script.js"}, path
        for data in visit.tree.iter("script"):
            if data.get("type"):
                json.loads(data.text or "")
        assert "49" not in visit.text.split("Datestamp")[0], path


def test_machines_get_data_links_and_lists(crawl: Crawl) -> None:
    client = crawl.client
    page = crawl.read("/record/oai:example.org:01")
    (data,) = [one for one in page.tree.iter("script") if one.get("type")]
    found = json.loads(data.text or "")
    assert (found["@type"], found["name"]) == ("WebPage", "Page 1")
    assert found["url"] == "http://www.a1.cz/"
    links = client.raw(path="/record/oai:example.org:01")["headers"]["Link"]
    assert f'<{ROOT}/record/oai:example.org:01>; rel="cite-as"' in links
    for target in re.findall(r'<([^>]+)>; rel="describedby"', links):
        assert b"<error" not in content(client.raw(target.partition("?")[2]))
    feed = etree.fromstring(content(client.raw(path="/publishes.atom")))
    assert feed.tag == f"{ATOM}feed"
    assert [e.text for e in feed.iter(f"{ATOM}updated")][1:] == [
        "2026-03-01T11:30:00Z",
        "2026-03-01T11:00:00Z",
    ]
    for path in ("/opensearch.xml", "/robots.txt", "/style.css", "/script.js", "/favicon.ico"):
        assert client.raw(path=path)["statusCode"] == 200


def test_the_link_set_has_all_files_and_the_header_some() -> None:
    """FAIR Signposting: Level 1, and Level 2 as RFC 9264, section 4.2, writes it."""
    name, count = "oai:example.org:f", 30
    files = [{"path": f"a b{n}.csv", "key": "k", "mimetype": "text/csv"} for n in range(count)]
    fields = {column.name: None for column in FILESET.columns} | {
        "files": [*files, {"path": "elsewhere", "key": None, "platform_url": "https://a.org/e"}],
        "doi": "10.1/x(y)",
        "bundle": {"key": "k.zip"},
        "licences": [{"url": "https://a.org/by"}, {"url": None}, {"name": "other"}],
    }
    items = {name: Item(("collection:c",), "fileset", fields)}
    client = Client(holding(items), Clock(), content_serve=True)
    links = client.raw(path=f"/record/{name}")["headers"]["Link"]
    assert 0 < links.count('rel="item"; type="text/csv"') < count
    (target,) = re.findall(r'<([^>]+)>; rel="linkset"; type="application/linkset\+json"', links)
    reply = client.raw(target.partition("?")[2], path="/linkset")
    assert reply["headers"]["Content-Type"].startswith("application/linkset+json")
    found, *others = json.loads(content(reply))["linkset"]
    assert found["anchor"] == f"{ROOT}/record/{name}"
    assert [one["href"] for one in found["cite-as"]] == ["https://doi.org/10.1/x(y)"]
    assert [one["href"] for one in found["license"]] == ["https://a.org/by"]
    assert found["item"][0] == {
        "href": f"{ROOT}/content/{name}?file=a%20b0.csv",
        "type": "text/csv",
    }
    assert len(found["item"]) == count
    assert all(isinstance(one["profile"], list) for one in found["describedby"])
    page = [{"href": found["anchor"], "type": "text/html"}]
    assert [one for one in others if one.get("collection") == page] == [
        {"anchor": one["href"], "collection": page} for one in found["item"]
    ]
    assert (
        len([one for one in others if one.get("describes") == page]) == 3
    )  # oai_dc, oai_datacite, mets
    for missing in ("x", ""):
        assert client.raw(f"id={missing}", path="/linkset")["statusCode"] == 404
    (data,) = re.findall(
        r'<script type="application/ld\+json">(.*?)</script>',
        content(client.raw(path=f"/record/{name}")).decode(),
        re.DOTALL,
    )
    downloads = json.loads(data)["distribution"]
    assert len(downloads) == 20
    files = Crawl(client).read_table(f"/record/{name}", "files")
    assert [file["path"] for file in files] == [*(f"a b{n}.csv" for n in range(30)), "elsewhere"]
    assert [file["address"] for file in files[:1]] == [f"{ROOT}/content/{name}?file=a%20b0.csv"]
    assert downloads[0] == {
        "@type": "DataDownload",
        "name": "a b0.csv",
        "encodingFormat": "text/csv",
        "contentUrl": f"{ROOT}/content/{name}?file=a%20b0.csv",
    }
    shown = Crawl(client).read(f"/record/{name}").links()
    assert {f"/content/{name}?file=a%20b0.csv", f"/content/{name}", "https://a.org/e"} <= {
        one.removeprefix(ROOT) for one in shown
    }


def test_a_record_leads_to_configured_copies_and_says_how_to_cite_it() -> None:
    name = "oai:example.org:f"
    fields = {column.name: None for column in FILESET.columns} | {
        "files": [{"path": f"{n} b.csv", "key": "k"} for n in (1, 2)],
        "title": "Hives",
        "creators": [{"name": f"Bee {n}"} for n in range(7)],
        "published": "2024-07-01",
        "publisher": "Meadow",
        "bytes": 1836,
        "doi": "10.1/x",
    }
    data = "https://data.example.org/store"
    replay = "https://replay.example.org/{identifier}?file={file}"
    client = Client(
        holding({name: Item(("a",), "fileset", fields)}),
        Clock(),
        content_address=[replay],
        identify_data_url=data,
        content_serve=True,
        repository_name="An archive",
    )
    page = Crawl(client).read(f"/record/{name}")
    for number in (1, 2):
        assert f"https://replay.example.org/{name}?file={number}%20b.csv" in page.links()
    people = "; ".join(f"Bee {n}" for n in range(5))
    assert (
        f"{people}; et al. (2024). “Hives”. Meadow. An archive. https://doi.org/10.1/x."
        in page.text
    )
    assert "1,836 B (1.84 kB)" in page.text
    assert f"(echo \"SET VARIABLE root = '{data}/';\"; curl -s" in page.text


def test_catalogues_of_data_learn_what_the_archive_is() -> None:
    settings = {
        "repository_publisher": 'The "library"',
        "rights_statement": "https://a.org/cc0",
        "identify_data_url": "s3://data/store",
        "repository_name": "An archive",
    }
    client = Client(ten_captures(), Clock(), **settings)
    reply = client.raw(path="/dcat.jsonld")
    assert reply["headers"]["Content-Type"].startswith("application/ld+json")
    found = json.loads(content(reply))
    (dataset,), (service,) = found["dcat:dataset"], found["dcat:service"]
    for one in (found, dataset):
        assert one["dct:title"] == "An archive"
        assert one["dct:publisher"]["foaf:name"] == 'The "library"'
        assert one["dct:license"] == {"@id": "https://a.org/cc0"}
        assert one["dct:modified"]["@value"] == "2026-03-01T11:30:00Z"
    assert service["dcat:endpointURL"] == {"@id": f"{ROOT}/oai"}
    oai, parquet, *tables = dataset["dcat:distribution"]
    assert oai["dcat:accessService"] == {"@id": service["@id"]}
    assert parquet["dct:conformsTo"] == {"@id": "s3://data/store/snapshots/2/views.sql"}
    places = ["s3://data/store/tables/"]
    assert [one["dcat:accessURL"]["@id"] for one in tables] == places
    data = json.loads(
        re.findall(r"ld\+json\">(.+?)</script>", content(client.raw(path="/")).decode())[0]
    )
    assert (data["@type"], data["license"]) == ("Dataset", "https://a.org/cc0")
    listed = [f"{ROOT}/oai", "s3://data/store", *places]
    assert [one["contentUrl"] for one in data["distribution"]] == listed
    settings |= {"identify_data_url": "https://data.example.org/", "publish_tables": "true"}
    text = Client(ten_captures(), Clock(), **settings).raw(path="/dcat.jsonld")
    (dataset,) = json.loads(content(text))["dcat:dataset"]
    assert [one["dct:title"] for one in dataset["dcat:distribution"][1:]] == ["Parquet"]
    text = Client(ten_captures(), Clock(), rights_statement="Ask us").raw(path="/dcat.jsonld")
    assert json.loads(content(text))["dct:rights"] == "Ask us"


def test_the_sitemap_lists_the_pages_of_live_records() -> None:
    client = Client(ten_captures(), Clock(), site_sitemap=["capture"])
    index = etree.fromstring(content(client.raw(path="/sitemap.xml")))
    pages: list[str] = []
    for place in index.iter(f"{SITEMAP}loc"):
        query = str(place.text).partition("?")[2]
        part = etree.fromstring(content(client.raw(query, path="/sitemap.xml")))
        pages += [str(one.text) for one in part.iter(f"{SITEMAP}loc")]
    names = [f"{ROOT}/record/oai:example.org:{n:02}" for n in range(10) if n != 5]
    assert sorted(pages) == names
    assert b"sitemap.xml" in content(client.raw(path="/robots.txt"))
    closed = Client(ten_captures(), Clock(), site_sitemap=[], site_robots="none")
    assert closed.raw(path="/sitemap.xml")["statusCode"] == 404
    assert b"Disallow: /\n" in content(closed.raw(path="/robots.txt"))


def test_a_snapshot_of_nothing_has_pages() -> None:
    crawl = Crawl(Client(holding({}), Clock()))
    assert {"/", "/charts", "/sets", "/publishes", "/harvest"} <= crawl.walk().keys()


def test_pages_are_in_the_language_that_a_reader_chose() -> None:
    crawl = Crawl(Client(ten_captures(), Clock()))
    visits = crawl.walk("/?lang=cs", 30)
    assert "9 archivních kopií" in visits["/?lang=cs"].text
    chosen = [path for path in visits if "lang=cs" in path]
    assert len(chosen) > 5
    for path in chosen:
        assert visits[path].tree.get("lang") == "cs"
    czech = Crawl(Client(ten_captures(), Clock(), site_language="cs"))
    assert "9 archivních kopií" in czech.read("/").text
    assert "9 archived copies" in czech.read("/?lang=en").text


def test_no_english_is_left_on_a_czech_page() -> None:
    languages = read_languages((TEMPLATES,))
    english, czech = (languages[code].texts for code in ("en", "cs"))
    words = {text for text in english.values() if re.search("[a-z]{3}", text)}
    words -= {*czech.values(), "English", "capture"}  # which is a format as well
    visits = Crawl(Client(ten_captures(), Clock())).walk("/?lang=cs", 40)
    for path, visit in visits.items():
        if "lang=cs" in path:
            texts = {
                " ".join(text.split())
                for text in visit.tree.xpath("//body//text()[not(ancestor::code)]")
            }
            assert sorted(texts & words) == [], path


def test_every_language_has_every_text() -> None:
    languages = read_languages((TEMPLATES,))
    raw = {path.stem for path in (TEMPLATES / "languages").glob("*.toml")}
    assert raw == {"en", "cs"} == languages.keys()
    english = languages["en"].texts
    for code in raw:
        tables = tomllib.loads((TEMPLATES / "languages" / f"{code}.toml").read_text("utf-8"))
        assert {f"{table}.{name}" for table, rows in tables.items() for name in rows} == {*english}
        flat = read_languages((TEMPLATES,))[code].texts
        fields = {key: sorted(re.findall(r"{\w+}", value)) for key, value in flat.items()}
        assert fields == {key: sorted(re.findall(r"{\w+}", v)) for key, v in english.items()}
    for row in KINDS.values():
        shown = {f"field.{column.name}" for column in row.columns if column.name not in ELSEWHERE}
        assert shown <= english.keys()
    used = set()
    for path in (TEMPLATES / "site").glob("*.html"):
        used |= {*re.findall(r'\bt\("([\w.]+)"[,)]', path.read_text("utf-8"))}
    for path in (TEMPLATES.parent / "functions" / "search").glob("*.py"):
        codes = re.findall(r'SearchQueryError\("(\w+)"', path.read_text("utf-8"))
        used |= {f"query.{code}" for code in codes}
    for path in (TEMPLATES.parent / "functions" / "site").rglob("*.py"):
        used |= {*re.findall(r'\btext\(\s*"([\w.]+)"[,)]', path.read_text("utf-8"))}
    assert used <= english.keys()


@pytest.mark.parametrize(
    ("text", "english", "czech"),
    [
        ("2026", "2026", "2026"),
        ("2026-01", "January 2026", "leden 2026"),
        ("2026-11-05", "5 November 2026", "5. listopadu 2026"),
        ("2026-11-05T07:08:09.5Z", "5 November 2026, 07:08 UTC", "5. listopadu 2026, 07:08 UTC"),
        ("2026-13", "2026-13", "2026-13"),
        ("c1998", "c1998", "c1998"),
        ("", "", ""),
    ],
)
def test_a_date_is_written_in_words(text: str, english: str, czech: str) -> None:
    languages = read_languages((TEMPLATES,))
    assert languages["en"].write_date(text) == english
    assert languages["cs"].write_date(text) == czech


def test_an_operator_adds_a_language_and_replaces_a_page(tmp_path: Path) -> None:
    (tmp_path / "languages").mkdir()
    (tmp_path / "site").mkdir()
    language = '[language]\nname = "Deutsch"\n[overview]\nrecords = "Sätze"\n'
    (tmp_path / "languages" / "de.toml").write_text(language, "utf-8")
    (tmp_path / "site" / "error.html").write_text("<h1>Ours: {{ message }}</h1>", "utf-8")
    (tmp_path / "site" / "logo.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    client = Client(
        ten_captures(),
        Clock(),
        formats_templates=str(tmp_path),
        site_language="de",
        site_colours={"light": "#123456"},
    )
    page = Crawl(client).read("/charts")
    assert "Sätze 9" in page.text
    assert "Deleted Captures 9 1" in page.text  # a text that the language lacks
    assert [one.get("src") for one in page.tree.iter("img")] == ["/logo.svg"]
    assert b"#123456" in content(client.raw(path="/style.css"))
    assert b"Ours: There is no record" in content(client.raw(path="/record/x"))
    other = tmp_path / "other"
    (other / "languages").mkdir(parents=True)
    (other / "languages" / "fr.toml").write_text("x = 1")
    with pytest.raises(ConfigurationError, match=r"fr\.toml"):
        read_languages((other, TEMPLATES))


def test_charts_have_a_place_for_every_value() -> None:
    map_ = draw_months({"2007-11": 1, "2009-01": 1000, "2009-12": 30})
    assert [(c.month, c.level) for c in map_.cells] == [
        ("2009-01", 5),
        ("2009-12", 3),
        ("2007-11", 1),
    ]
    assert [(year, total) for year, _, total in map_.years] == [
        ("2009", 1030),
        ("2008", 0),
        ("2007", 1),
    ]
    assert map_.levels == [(1, 1), (3, 30), (5, 1000)]  # as a legend has them
    assert [bar.share for bar in draw_bars([("a", 4), ("b", 1)])] == [100, 25]
    plot = draw_line([("1", 0), ("2", 10)])
    assert plot.points[0][1] == plot.height > plot.points[1][1]
    assert draw_months({}).cells == draw_line([]).points == ()


def test_changes_of_content_are_told_from_what_only_interrupts_them() -> None:
    def row(day: int, digest: str, status: int = 200, type_: str = "response") -> CaptureRow:
        fields = dict.fromkeys(FIELDS) | {
            "url": "http://a.cz/",
            "url_surtkey": "cz,a)/",
            "fetch_date": f"2009-02-{day:02}",
            "fetch_status": status,
            "content_digest": digest,
            "warc_record_type": type_,
        }
        return CaptureRow.of(f"oai:{day}", day, (), fields)

    rows = [
        row(1, "R", 301),
        row(2, "A"),
        row(3, "E", 503),
        row(4, "A"),
        row(5, "B"),
        row(6, "B", type_="revisit"),
        row(7, "B"),
        row(8, "A"),
    ]
    found = find_changes(rows)
    assert found == [
        "redirect",
        "changed",
        "error",
        "same",
        "changed",
        "revisit",
        "same",
        "changed",
    ]
    assert find_changes(rows[1:3]) == ["first", "error"]
    assert find_changes(rows[1:4], lambda surt: False) == ["", "error", "same"]
    assert mark_months(rows, found) == {"2009-02": [*MARKED[1:]]}
    assert mark_months(rows[1:3], find_changes(rows[1:3])) == {"2009-02": ["first", "error"]}


def test_pages_of_long_records_stay_small() -> None:
    long = "<&" * 2_000
    files = [{"path": f"{n}{long[:200]}", "key": "k", "sha256": "0" * 64} for n in range(500)]
    fields = {column.name: None for column in FILESET.columns}
    fields |= {
        "title": long,
        "files": files,
        "subjects": [long] * 500,
        "status": "success",
        "creators": [{"name": long}] * 500,
        "licences": [],
        "related": [],
        "withheld": [],
    }
    items = {
        f"oai:example.org:{n}": capture(f"http://a.cz/{long[:1500]}", title=long) for n in range(60)
    }
    repository = holding({"oai:example.org:f": Item(("a",), "fileset", fields), **items})
    crawl = Crawl(Client(repository, Clock(), content_serve=True))
    assert "More files: " in crawl.read("/record/oai:example.org:f").text
    for path in (
        "/records",
        "/records?kind=capture",
        "/record/oai:example.org:1",
        "/answer?verb=ListRecords&metadataPrefix=oai_dc",
    ):
        crawl.read(path)
