"""Files of records become items: guessed, declared, changed, repeated, missing or deleted."""

import gzip
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.builder.kinds.records.test_own import answer, publish
from tests.builder.sources.records.test_iso2709 import marc
from tests.e2e.conftest import SHARED, Home, warc
from tests.functions.oai.validity import OAI, valid

SAMPLE = Path(__file__).parents[4] / "builder/commands/demo/files/books.mrc"
FILES = SHARED / "records"
DECLARED = """
[[records]]
name = "catalogue"
files = "export/*.mrc"
identifier = "001"
sets = ["type:{leader/6}"]
set_names = { "type:a" = "Books" }
url = "https://catalogue.example.org/record/{001}"
formats = { marc21 = "as-is", oai_dc = "marc21-oai_dc" }
complete = true
"""
STATIC = """<Repository xmlns="http://www.openarchives.org/OAI/2.0/static-repository"
 xmlns:oai="http://www.openarchives.org/OAI/2.0/">
<Identify><oai:repositoryName>A</oai:repositoryName></Identify>
<ListMetadataFormats/>
<ListRecords metadataPrefix="oai_dc"><oai:record><oai:header>
<oai:identifier>oai:arXiv:1</oai:identifier><oai:datestamp>2001-12-14</oai:datestamp></oai:header>
<oai:metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Bees</dc:title></oai_dc:dc></oai:metadata>
</oai:record></ListRecords>
<ListRecords metadataPrefix="x"><oai:record><oai:header>
<oai:identifier>oai:arXiv:1</oai:identifier><oai:datestamp>2001-12-14</oai:datestamp></oai:header>
<oai:metadata><x xmlns="urn:x">1</x></oai:metadata></oai:record></ListRecords>
</Repository>"""


@pytest.fixture(autouse=True)
def export(home: Home) -> None:
    (home.folder / "export").mkdir()


def declare(home: Home, section: str = DECLARED) -> None:
    home.config.write_text(home.config.read_text() + section)


def write(home: Home, name: str, *records: bytes) -> Path:
    path = home.folder / "export" / name
    path.write_bytes(b"".join(records))
    return path


def ingest(home: Home, *arguments: object, code: int = 0) -> Mapping[str, Any]:
    done = home("ingest", "--json", *arguments)
    assert done.code == code, (done.out, done.err)
    return json.loads(done.out).get("records", {})


def release(home: Home, *arguments: object, code: int = 0) -> tuple[int, int, int]:
    """Ingest and publish."""
    ingest(home, *arguments, code=code)
    return publish(home)


def rows(home: Home, sql: str) -> list[dict[str, Any]]:
    done = home("query", "--json", sql)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def test_what_is_guessed_is_what_its_section_says(home: Home) -> None:
    path = write(home, "books.mrc", marc(1), marc(2))
    done = home("ingest", path)
    assert done.code == 0, done.err
    section = done.out[done.out.index("[[records]]") :]
    assert tomllib.loads(section)["records"][0]["name"] == "books"
    assert publish(home) == (2, 0, 0)
    declare(home, f"\n{section}")
    assert release(home) == (0, 0, 0)
    assert home("verify").code == 0


def test_the_guess_of_columns_names_those_that_there_are(home: Home) -> None:
    path = write(home, "people.csv", "id;title;created\n1;Včely;1998\n".encode("cp1250"))
    done = home("ingest", path)
    section = tomllib.loads(done.out[done.out.index("[[records]]") :])["records"][0]
    assert (section["identifier"], section["fields"]["title"]) == ("id", "title")
    publish(home)
    assert [row["title"] for row in rows(home, "SELECT title FROM own_records")] == ["Včely"]


def test_files_of_one_name_are_tables_of_their_own_whenever_they_come(home: Home) -> None:
    paths = [home.folder / name / "n.csv" for name in ("a", "b")]
    for number, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text(f"id,title\n1,Bees {number}\n2,Wasps {number}\n")
    assert release(home, paths[0]) == (2, 0, 0)
    assert "its table is n-2, as n is that of a/n.csv" in home("ingest", paths[1]).err
    assert publish(home) == (2, 0, 0)
    paths[1].write_text("id,title\n1,Ants\n2,Wasps 1\n")
    (paths[1].parent / "m.csv").write_text("id,title\n1,Flies\n")
    assert release(home, paths[1].parent, paths[0]) == (1, 1, 0)
    assert release(home, "--again", paths[0]) == (0, 0, 0)
    listed = rows(home, "SELECT repository, title FROM own_records ORDER BY ALL")
    assert [(row["repository"], row["title"]) for row in listed] == [
        ("m", "Flies"),
        ("n", "Bees 0"),
        ("n", "Wasps 0"),
        ("n-2", "Ants"),
        ("n-2", "Wasps 1"),
    ]


def test_a_guess_of_a_folder_names_the_files_that_it_read(home: Home) -> None:
    write(home, "a.mrc", marc(1))
    write(home, "b.mrc", marc(2))
    write(home, "notes.txt", b"no record")
    done = home("ingest", home.folder / "export")
    section = tomllib.loads(done.out[done.out.index("[[records]]") :])["records"][0]
    assert section["files"] == "export/*.mrc"
    write(home, "c.csv", b"id,title\n1,A\n2,B\n")
    assert release(home, home.folder / "export") == (4, 0, 0)


def test_a_foreign_identifier_is_of_one_table(home: Home) -> None:
    assert release(home, write(home, "a.xml", STATIC.encode())) == (1, 0, 0)
    other = write(home, "b.xml", STATIC.replace("Bees", "Wasps").encode())
    gone = STATIC.replace("<oai:header>", '<oai:header status="deleted">').encode()
    for data in (other.read_bytes(), gone):
        other.write_bytes(data)
        report = ingest(home, other, code=1)
        assert report["faults"] == {"record-repeated": 1}
        assert "table b has it, but it is of table a" in report["first"][0]
        assert publish(home) == (0, 0, 0)
    assert rows(home, "SELECT title FROM own_records") == [{"title": "Bees"}]
    assert release(home, write(home, "a.xml", STATIC.replace("Bees", "Ants").encode())) == (0, 1, 0)


def test_a_guess_that_is_declared_under_another_name_is_not_doubled(home: Home) -> None:
    for name, data in (("a.mrc", marc(1)), ("b.mrc", marc(2)), ("c.xml", STATIC.encode())):
        ingest(home, write(home, name, data))
    assert publish(home) == (3, 0, 0)
    declare(home, DECLARED.replace("catalogue", "a", 1))
    declare(home, '[[records]]\nname = "other"\nfiles = "export/*.xml"\n')
    write(home, "d.xml", STATIC.replace("oai_dc", "dc2").encode())
    report = ingest(home, code=1)
    assert report["superseded"] == 1
    assert "formats of an item are joined within a file alone" in report["first"][0]
    assert publish(home) == (1, 3, 1)
    listed = rows(home, "SELECT repository FROM own_records ORDER BY ALL")
    assert [row["repository"] for row in listed] == ["a", "a", "other"]


@pytest.mark.parametrize("has_ingest", [True, False])
def test_other_identifiers_supersede_the_old_ones(home: Home, has_ingest: bool) -> None:
    section = '[[records]]\nname = "p"\nfiles = "export/p.csv"\nidentifier = "nr"\n'
    declare(home, section)
    path = write(home, "p.csv", b"nr,key,title\n1,2,A\n2,1,B\n3,c,C\n4,,D\n")
    assert release(home) == (4, 0, 0)
    path.write_text("nr,key,title\n1,2,A\n2,1,B\n5,e,E\n")  # the others are of earlier files
    if has_ingest:
        release(home)
    home.config.write_text(home.config.read_text().replace('"nr"', '"key"'))
    if has_ingest:
        assert ingest(home)["superseded"] == 2
        path.unlink()
    assert publish(home) == ((2, 4, 2) if has_ingest else (1, 3, 1))
    listed = rows(home, "SELECT id, title FROM own_records ORDER BY ALL")
    pairs = [(row["id"], row["title"]) for row in listed]
    assert pairs == [("1", "B"), ("2", "A"), ("4", "D"), ("c", "C"), *[("e", "E")] * has_ingest]
    assert publish(home) == (0, 0, 0)


def test_formats_that_change_nothing_make_no_snapshot(home: Home) -> None:
    declare(home, DECLARED.replace('["type:{leader/6}"]', '["{leader/6}"]'))
    release(home, write(home, "a.mrc", marc(1)))
    before = home("status", "--json").json["snapshot"]
    home.config.write_text(home.config.read_text().replace('["{leader/6}"]', '["{leader/6-6}"]'))
    for _ in range(2):
        assert publish(home) == (0, 0, 0)
    assert home("status", "--json").json["snapshot"] == before
    assert release(home) == (0, 0, 0)


def test_what_lies_beside_archives_is_left_to_them(home: Home) -> None:
    write(home, "a.mrc", marc(1))
    write(home, "crawl.json", b'{"id": "1", "title": "a crawl"}')
    write(home, "seeds.csv", b"id,url\n1,http://a.cz/\n2,http://b.cz/\n")
    warc(home.folder / "export" / "a.warc.gz", {"http://a.cz/": b"<title>A</title>"})
    assert home("ingest", "--jobs", "1", home.folder / "export").code == 0
    assert publish(home) == (2, 0, 0)
    kinds = [row["kind"] for row in rows(home, "SELECT kind FROM records ORDER BY kind")]
    assert kinds == ["capture", "record"]


def test_the_sample_of_the_readme_is_an_endpoint(home: Home) -> None:
    assert home("ingest", SAMPLE).code == 0
    assert publish(home) == (3, 0, 0)
    with home.served() as base:
        for prefix in ("oai_dc", "marc21"):
            listed = answer(base, "ListRecords", valid, metadataPrefix=prefix)
            assert len([*listed.iter(f"{OAI}record")]) == 3
    titles = [row["title"] for row in rows(home, "SELECT title FROM own_records ORDER BY id")]
    assert titles[2] == "Včely a květy"


def test_no_identifier_is_made_with_the_namespace_that_a_publish_refuses(home: Home) -> None:
    home.config.write_text(home.config.read_text().replace('"b.cz"', '"example.org"'))
    refused = home("ingest", SAMPLE)
    assert (refused.code, refused.out) == (2, "")
    assert "set it to your domain name before the first publish" in refused.err
    assert not [*(home.folder / "store").glob("intake/*")]


def test_a_declared_table_has_identifiers_sets_and_addresses(home: Home) -> None:
    declare(home)
    write(home, "a.mrc", marc(1))
    assert release(home) == (1, 0, 0)
    with home.served() as base:
        (record,) = answer(base, "ListRecords", metadataPrefix="marc21").iter(f"{OAI}record")
        identifier = record.findtext(f"{OAI}header/{OAI}identifier")
        assert str(identifier).startswith("oai:b.cz:catalogue,")
        assert record.findtext(f"{OAI}header/{OAI}setSpec") == "type:a"
        names = {e.text for e in answer(base, "ListSets").iter(f"{OAI}setName")}
        assert "Books" in names
        dc = answer(base, "GetRecord", metadataPrefix="oai_dc", identifier=str(identifier))
        assert b"https://catalogue.example.org/record/" in etree.tostring(dc)
    (row,) = rows(home, "SELECT title, url FROM own_records")
    assert row["title"] == "A title"
    assert row["url"].startswith("https://catalogue.example.org/record/")


def test_only_what_changed_is_made_and_what_is_gone_is_deleted(home: Home) -> None:
    declare(home)
    write(home, "a.mrc", *map(marc, range(12)))
    assert ingest(home)["records"] == 12
    assert publish(home) == (12, 0, 0)
    assert ingest(home) == {}
    write(home, "a.mrc", marc(0, "Another"), *map(marc, range(2, 12)))
    report = ingest(home)
    assert (report["records"], report["same"], report["deleted"]) == (1, 10, 1)
    assert publish(home) == (0, 2, 1)
    write(home, "a.mrc", *map(marc, range(2, 12)), marc(20, leader="00000dam a2200000   4500"))
    report = ingest(home)
    assert report["same"] == 10
    assert publish(home) == (1, 1, 2)


def test_nothing_is_deleted_because_a_file_could_not_be_read(home: Home) -> None:
    declare(home)
    write(home, "a.mrc", *map(marc, range(3)))
    write(home, "b.mrc", *map(marc, range(3, 6)))
    release(home)
    write(home, "a.mrc", marc(0), marc(1)[:-9])
    write(home, "b.mrc", marc(3))
    assert release(home, code=1) == (0, 0, 0)
    write(home, "a.mrc", *map(marc, range(3)))
    assert release(home) == (0, 2, 2)


def test_records_that_cannot_be_items_are_faults_with_their_place(home: Home) -> None:
    path = write(home, "a.mrc", marc(1), b"00000 no record\x1d", marc(1, "Again"), marc(2))
    report = ingest(home, path)
    assert report["records"] == 2
    assert publish(home) == (2, 0, 0)
    faults = rows(home, "SELECT source, code, detail FROM faults ORDER BY code")
    assert [(f["source"], f["code"]) for f in faults] == [
        ("export/a.mrc", "bad-record"),
        ("export/a.mrc", "record-repeated"),
    ]
    assert all("record " in f["detail"] for f in faults)


@pytest.mark.parametrize("is_published", [True, False])
def test_a_file_that_is_read_whole_supersedes_its_earlier_faults(
    home: Home, is_published: bool
) -> None:
    declare(home)
    invalid = marc(1)[:20] + b"4504" + marc(1)[24:]
    other = home.folder / "other" / "a.mrc"
    other.parent.mkdir()
    other.write_bytes(invalid)
    ingest(home, other)
    write(home, "a.mrc", marc(0), b"00000 no record\x1d", invalid, marc(2)[:-9])
    ingest(home, code=1)
    if is_published:
        publish(home)
    write(home, "a.mrc", marc(0), invalid, marc(2, "Another"))
    release(home)
    sql = "SELECT source, code FROM faults ORDER BY ALL"
    faults = [(row["source"], row["code"]) for row in rows(home, sql)]
    both = [("export/a.mrc", "record-invalid"), ("other/a.mrc", "record-invalid")]
    assert faults == both
    write(home, "a.mrc", marc(0), marc(1), marc(2, "Another"))
    assert ingest(home)["same"] == 2
    publish(home)
    assert [(row["source"], row["code"]) for row in rows(home, sql)] == both[1:]
    path = write(home, "b.mrc", marc(1, "Yet another"), marc(3))
    release(home)
    assert len(rows(home, sql)) == 2
    path.unlink()
    release(home)
    assert len(rows(home, sql)) == 1
    assert home("verify").code == 0


def test_what_is_not_valid_is_served_and_is_a_fault(home: Home) -> None:
    data = marc(1)
    path = write(home, "a.mrc", data[:20] + b"4504" + data[24:])
    assert ingest(home, path)["faults"] == {"record-invalid": 1}
    assert publish(home) == (1, 0, 0)
    (fault,) = rows(home, "SELECT * FROM faults")
    assert (fault["code"], fault["done"]) == ("record-invalid", "served")
    assert "leader" in fault["detail"]


def test_other_formats_are_made_of_what_is_stored(home: Home) -> None:
    declare(home)
    path = write(home, "a.mrc", marc(1), marc(2))
    release(home)
    path.unlink()
    text = home.config.read_text()
    home.config.write_text(text.replace("oai_dc =", 'mods = "marc21-mods", oai_dc ='))
    assert publish(home) == (0, 2, 0)
    assert publish(home) == (0, 0, 0)
    home.config.write_text(text.replace('marc21 = "as-is", ', ""))
    assert publish(home) == (0, 2, 0)
    with home.served() as base:
        for record in answer(base, "ListRecords", metadataPrefix="marc21").iter(f"{OAI}header"):
            assert record.get("status") == "deleted"
    home.config.write_text(text)
    assert publish(home) == (0, 2, 0)
    assert home("verify").code == 0


def test_elements_without_a_namespace_are_valid_in_an_answer(home: Home) -> None:
    section = '[[records]]\nname = "x"\nfiles = "export/x.xml"\nidentifier = "a/@id"\n'
    declare(home, section)
    write(home, "x.xml", b"<r><b c='>'><a id='1'/></b><b xmlns=''><a id='2'/></b></r>")
    ead = b'<ead><eadheader><eadid>e1</eadid></eadheader><archdesc level="fonds"/></ead>'
    ingest(home)
    assert release(home, write(home, "e.xml", ead)) == (3, 0, 0)
    with home.served() as base:
        for prefix, namespace in (("xml", "urn:x-none:xml"), ("ead", "urn:isbn:1-931666-22-9")):
            listed = answer(base, "ListRecords", metadataPrefix=prefix)
            elements = [metadata[0] for metadata in listed.iter(f"{OAI}metadata")]
            assert {etree.QName(element).namespace for element in elements} == {namespace}
            formats = answer(base, "ListMetadataFormats").iter(f"{OAI}metadataNamespace")
            assert namespace in {e.text for e in formats}
    home.config.write_text(home.config.read_text() + 'fields = { title = "a/@id" }\n')
    assert publish(home) == (0, 2, 0)
    titles = rows(home, "SELECT title FROM own_records WHERE repository = 'x' ORDER BY ALL")
    assert [row["title"] for row in titles] == ["1", "2"]
    assert release(home) == (0, 0, 0)


@pytest.mark.skipif(not FILES.is_dir(), reason="the shared files of records are not here")
def test_records_of_a_static_repository_are_valid_as_they_are(home: Home) -> None:
    path = FILES / "static-repository/www.openarchives.org_StaticRepositoryExample.xml"
    assert ingest(home, path)["faults"] == {}
    publish(home)
    with home.served() as base:
        listed = answer(base, "ListRecords", valid, metadataPrefix="oai_dc")
        assert len([*listed.iter(f"{OAI}metadata")]) == 2


def test_an_item_of_several_records_keeps_its_identifier_and_formats(home: Home) -> None:
    path = write(home, "static.xml", STATIC.encode())
    assert ingest(home, path)["faults"] == {}
    assert publish(home) == (1, 0, 0)
    with home.served() as base:
        formats = answer(base, "ListMetadataFormats", identifier="oai:arXiv:1")
        assert {e.text for e in formats.iter(f"{OAI}metadataPrefix")} == {"oai_dc", "x"}
        record = answer(base, "GetRecord", identifier="oai:arXiv:1", metadataPrefix="x")
        assert record.findtext(f".//{OAI}metadata/{{urn:x}}x") == "1"
    assert release(home, "--again", path) == (0, 0, 0)


def test_a_query_is_carried_out_each_time(home: Home) -> None:
    section = """
[[records]]
name = "people"
query = "SELECT * FROM read_csv('export/people.csv', all_varchar = true)"
identifier = "nr"
fields = { title = "name" }
deleted = "gone"
complete = true
"""
    declare(home, section)
    table = home.folder / "export" / "people.csv"
    table.write_text("nr,name,gone\n1,Eva,\n2,Jan,no\n3,Petr,yes\n")
    assert ingest(home)["records"] == 2
    assert publish(home) == (3, 0, 1)
    assert ingest(home, "people")["records"] == 0
    table.write_text("nr,name,gone\n1,Eva,\n3,Petr,yes\n4,Ida,\n")
    assert release(home) == (1, 1, 1)
    titles = {row["title"] for row in rows(home, "SELECT title FROM own_records")}
    assert titles == {"Eva", "Ida"}


def test_a_table_whose_files_are_gone_loses_nothing(home: Home) -> None:
    declare(home)
    path = write(home, "a.mrc", marc(1), marc(2))
    release(home)
    (home.folder / "export" / "b.mrc").write_text("no record")
    path.unlink()
    ingest(home, code=1)
    (home.folder / "export" / "b.mrc").unlink()
    assert ingest(home, code=1)["unread"] == {"export/*.mrc": "there is no such file"}
    assert home("publish", "--json").json["deleted"] == 0


def test_a_file_with_a_bad_record_deletes_nothing(home: Home) -> None:
    declare(home)
    write(home, "a.mrc", *map(marc, range(4)))
    release(home)
    write(home, "a.mrc", marc(0), b"00000 no record\x1d", marc(2), marc(3))
    report = ingest(home, code=1)
    assert (report["losses"], report["deleted"]) == ({"catalogue": 1}, 0)
    assert "a.mrc" in report["reasons"]["catalogue"]
    assert publish(home) == (0, 0, 0)
    assert ingest(home, code=1)["losses"] == {"catalogue": 1}
    write(home, "a.mrc", marc(0), marc(2), marc(3))
    assert ingest(home)["deleted"] == 1
    assert publish(home) == (0, 1, 1)


def test_a_record_in_two_files_outlives_one_of_them(home: Home) -> None:
    declare(home)
    first = write(home, "a.mrc", marc(1), marc(2))
    write(home, "b.mrc", marc(1), marc(3), marc(2, "Another"))
    assert release(home) == (3, 0, 0)
    write(home, "b.mrc", marc(3), marc(4))
    assert ingest(home)["deleted"] == 0
    assert publish(home) == (1, 0, 0)
    write(home, "b.mrc", marc(1), marc(3), marc(2, "Another"))
    assert release(home) == (0, 1, 1)
    first.unlink()
    assert ingest(home)["deleted"] == 0
    assert publish(home) == (0, 1, 0)
    assert len(rows(home, "FROM own_records")) == 3


@pytest.mark.parametrize("name", ["export/b.mrc", "export/b*.mrc"])
def test_what_is_named_and_missing_is_no_deletion(home: Home, name: str) -> None:
    section = DECLARED.replace('"export/*.mrc"', f'["export/a.mrc", "{name}"]')
    declare(home, section.replace("complete = true", 'complete = true\ndeleted = "gone.txt"'))
    write(home, "a.mrc", marc(1))
    path = write(home, "b.mrc", marc(2))
    assert home("ingest").code == 2  # the list is missing
    (home.folder / "gone.txt").write_text("")
    release(home)
    path.unlink()
    report = ingest(home, code=1)
    assert (report["unread"], report["deleted"]) == ({name: "there is no such file"}, 0)
    assert publish(home) == (0, 0, 0)


def test_one_file_is_not_of_two_tables(home: Home) -> None:
    declare(home, DECLARED + DECLARED.replace('"catalogue"', '"other"'))
    write(home, "a.mrc", marc(1))
    done = home("ingest")
    assert (done.code, "catalogue and other" in done.err) == (2, True)


def test_a_great_loss_is_said_until_it_is_decided(home: Home) -> None:
    declare(home, DECLARED.replace("complete = true", ""))
    write(home, "a.mrc", *map(marc, range(20)))
    release(home)
    write(home, "a.mrc", marc(0))
    assert ingest(home)["deleted"] == 0
    publish(home)
    declare(home, "complete = true\n")
    for _ in range(2):
        assert ingest(home, code=1)["losses"] == {"catalogue": 19}
        assert publish(home) == (0, 0, 0)
    assert ingest(home, "--accept-loss")["deleted"] == 19
    assert publish(home) == (0, 19, 19)
    assert ingest(home) == {}


def test_a_list_of_identifiers_deletes(home: Home) -> None:
    declare(home, DECLARED.replace("complete = true", 'deleted = "gone.txt"'))
    gone = home.folder / "gone.txt"
    gone.write_text("")
    write(home, "a.mrc", marc(1), marc(2))
    release(home)
    (row, *_) = rows(home, "SELECT id FROM own_records ORDER BY id")
    gone.write_text(f"{row['id']}\nnobody\n")
    assert ingest(home)["deleted"] == 1
    assert publish(home) == (0, 1, 1)


def test_what_is_no_record_in_a_folder_withholds_no_deletion(home: Home) -> None:
    declare(home, DECLARED.replace("export/*.mrc", "export"))
    write(home, "README.txt", b"These are our records.\n")
    path = write(home, "a.mrc", marc(1), marc(2))
    done = home("ingest")
    assert (done.code, "passed over: " in done.out) == (0, True)
    publish(home)
    write(home, "a.mrc", marc(1))
    assert ingest(home)["deleted"] == 1
    assert publish(home) == (0, 1, 1)
    path.write_bytes(b"<html>Sorry</html>")  # it was read before
    report = ingest(home, code=1)
    assert (str(path) in report["unread"], report["deleted"]) == (True, 0)
    path.unlink()
    assert "README.txt" in next(iter(ingest(home, code=1)["unread"]))
    assert publish(home)[2] == 0


def test_a_gzip_that_is_cut_off_is_named_so_and_deletes_nothing(home: Home) -> None:
    declare(home, DECLARED.replace("*.mrc", "*.gz"))
    whole = gzip.compress(b"".join(map(marc, range(5))))
    write(home, "a.mrc.gz", whole)
    release(home)
    for path in (write(home, "a.mrc.gz", whole[: len(whole) // 2]), None):
        report = ingest(home, *([path] if path else []), code=1)
        assert [*report["unread"].values()] == ["its gzip is cut off"]
        assert publish(home)[2] == 0
    other = home.folder / "other.mrc.gz"
    other.write_bytes(whole[: len(whole) // 2])
    assert f"{other}: its gzip is cut off" in home("ingest", other).out


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("query", "SELEC 1", "its query is not one SELECT"),
        ("query", "SELECT a FROM (SELECT 1 AS b)", 'Referenced column "a" not found'),
        ("files", 'export/*"\ndeleted = "gone.txt', "gone.txt is not UTF-8"),
        ("files", 'export/*"\nformats.x = "nosuch', "nosuch: no such crosswalk"),
        ("files", 'export/*"\nencoding = "windows-1259', "its encoding is unknown: windows-1259"),
    ],
)
def test_what_a_table_cannot_mean_is_one_line(
    home: Home, key: str, value: str, reason: str
) -> None:
    declare(home, f'[[records]]\nname = "p"\n{key} = "{value}"\n')
    write(home, "a.csv", b"id,title\n1,A\n")
    (home.folder / "gone.txt").write_bytes(b"\xe1\xe9\n")
    done = home("ingest")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "[[records]] p: " in done.err
    assert reason in done.err


def test_the_store_within_a_folder_is_no_source(home: Home) -> None:
    write(home, "a.mrc", marc(1))
    for _ in range(2):
        done = home("ingest", home.folder)
        publish(home)
        assert "1 record of 1 file" in done.out or done.out == "everything was ingested before\n"
    declare(home, DECLARED.replace("export/*.mrc", ".").replace("catalogue", "a"))
    assert ingest(home)["files"] == 1


def test_a_query_that_reads_no_file_deletes_nothing(home: Home) -> None:
    query = "SELECT * FROM read_csv('export/p.csv')"
    declare(home, f'[[records]]\nname = "p"\nquery = "{query}"\ncomplete = true\n')
    path = write(home, "p.csv", b"id,title\n1,A\n")
    release(home)
    path.unlink()
    assert "[[records]] p" in ingest(home, code=1)["unread"]
    path.write_bytes("id,title\n1,Včely\n".encode("cp1250"))
    (reason,) = ingest(home, code=1)["unread"].values()
    assert "name the file in `files`, with its `encoding`" in reason
    assert publish(home)[2] == 0


def test_formats_without_a_schema_are_listed_as_unchecked(home: Home) -> None:
    report = ingest(home, write(home, "a.xml", STATIC.encode()), write(home, "a.mrc", marc(1)))
    assert report["unchecked"] == ["x"]


def test_what_has_no_known_identifier_says_what_to_declare(home: Home) -> None:
    done = home("ingest", write(home, "p.csv", b"Name,Born\nEva,1900\n"))
    assert done.code == 1
    assert "nothing at columns that are known, and it has Name, Born: declare `iden" in done.out


def test_a_folder_without_records_is_no_success(home: Home) -> None:
    (home.folder / "export" / "notes.txt").write_text("no record")
    done = home("ingest", home.folder / "export")
    assert done.code == 1
    assert "notes.txt" in done.out
    bad = write(home, "bad.mrc", b"00026nam a2200025   4500\x1e\x1d")
    done = home("ingest", bad)
    assert done.code == 1
    assert f"{bad}: " in done.out


@pytest.mark.skipif(not FILES.is_dir(), reason="the shared files of records are not here")
@pytest.mark.sampled(3)
def test_each_shared_file_becomes_items_or_is_named(home: Home) -> None:
    for path in sorted(p for p in FILES.rglob("*") if p.is_file() and p.suffix != ".md"):
        done = home("ingest", path)
        assert done.code == 0 or f"{path}: " in done.out, done.err
    assert publish(home)[0] > 60
    assert home("verify").code == 0
