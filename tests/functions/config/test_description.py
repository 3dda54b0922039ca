"""What an operator may say of the repository, its rights and its origin; and what is refused."""

import re
from pathlib import Path

import pytest

from functions.config import configuration
from functions.snapshot.errors import ConfigurationError

ICON = 'icon = "http://a.cz/i.png"'
XSI = "http://www.w3.org/2001/XMLSchema-instance"
A = f'xmlns:xsi="{XSI}" xsi:schemaLocation="urn:a http://a.cz/a.xsd"'
STYLE = 'url = "http://a.cz/a.xsl", namespace = "urn:a", type = "text/xsl"'


@pytest.mark.parametrize(
    "text",
    [
        "[repository]\nbase_url = ''",
        "[repository]\nbase_url = 'https://a.cz:8080/~x/%C4%8D/oai'",
        "[repository]\nbase_url = 'http://[2001:db8::1]:65535/oai'",
        "[repository]\nbase_url = 'http://repository_1/oai'",
        "[repository]\nearliest_datestamp = ''",
        "[repository]\nearliest_datestamp = '2000-01-01T12:00:00Z'",
        "[identify]\nfriends = ['http://a.cz/oai', 'https://b.cz:80/~x/(y)/%C4%8D;z=1', 'http://[::1]/']",
        "[identify]\nbranding = {}",
        f"[identify.branding]\n{ICON}",
        f'[identify.branding]\n{ICON}\nicon_link = "http://a.cz/?b#c"\nicon_title = "A <b>"\n'
        "icon_width = 88\nicon_height = 31",
        f"[identify.branding]\nrendering = [{{{STYLE}}}, {{{STYLE}}}]",
        f"[[identify.branding.rendering]]\n{STYLE.replace(', ', chr(10))}",
        "[identify.eprints]\ncontent = 'Pages'\nmetadata_policy = '''\nTwo\n\tlines\n'''\n"
        "data_policy = 'http://a.cz/'\nsubmission_policy = '-'\ncomment = 'http: no URL'",
        f"[identify]\ndescriptions = ['<a xmlns=\"urn:a\" {A}/>', "
        f"'''\n<b:a xmlns:b=\"urn:a\" {A}/>\n''']",
        f'[identify]\ndescriptions = [\'<b:a xmlns:b="urn:a" {A}><d xmlns="u:d"/></b:a>\']',
        f'[identify]\ndescriptions = [\'<a xmlns="urn:a" {A}><b xmlns=""><c/></b><d/></a>\']',
        f'[identify]\ndescriptions = [\'<a xmlns="urn:b" {A[:-1]}\n urn:b https://b.cz/b"/>\']'.replace(
            "'", "'''"
        ),
        "[identify]\ndata_url = 'https://a.cz/store'",
        "[identify]\ndata_url = 's3://bucket/a/b/'",
        "[rights]\nstatement = 'https://a.cz/'",
        "[rights]\nstatement = '<Free> for \"all\" & sundry,\u00a0ever'",
        "[rights.sets]\n'mime:text' = 'Free'\n'domain' = 'https://a.cz/'",
        "[provenance]\norigin = 'http://a.cz/warc/'",
        "[provenance]\norigin = 's3://bucket'",
    ],
)
def test_what_is_right_is_taken(text: str) -> None:
    configuration.parse(text, {})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("repository.base_url", '"ftp://a.cz/oai"'),
        ("repository.base_url", '"a.cz/oai"'),
        ("repository.base_url", '"http://[archive/oai"'),
        ("repository.base_url", '"http://[1.2.3.4]/oai"'),
        ("repository.base_url", '"http://[::::]/oai"'),
        ("repository.base_url", '"https:///oai"'),
        ("repository.base_url", '"http://h:abc/oai"'),
        ("repository.base_url", '"http://h:65536/oai"'),
        ("repository.base_url", '"http://me:secret@h/oai"'),
        ("repository.base_url", '"http://h/oai?a"'),
        ("repository.base_url", '"http://h/oai#a"'),
        ("repository.base_url", '"http://h/a b"'),
        ("repository.base_url", '"http://h/č"'),
        ("repository.base_url", '"http://h/<oai>"'),
        ("repository.base_url", "1"),
        ("repository.earliest_datestamp", '"2000-01-01"'),
        ("repository.earliest_datestamp", '"2000-01-01T12:00:00+01:00"'),
        ("repository.earliest_datestamp", '"2000-01-01T12:00:00.0Z"'),
        ("repository.earliest_datestamp", '"2000-02-30T12:00:00Z"'),
        ("repository.earliest_datestamp", '"0001-01-01T00:00:00Z"'),
        ("repository.earliest_datestamp", "2000-01-01T12:00:00Z"),
        ("repository.earliest_datestamp", "1"),
        ("identify.friends", '"http://a.cz/oai"'),
        ("identify.friends", '["a.cz/oai"]'),
        ("identify.friends", '["http://a.cz/oai?verb=Identify"]'),
        ("identify.friends", '["http://a.cz/#oai"]'),
        ("identify.friends", '["http://a.cz/%zz"]'),
        ("identify.friends", "[1]"),
        ("identify.branding", '"http://a.cz/i.png"'),
        ("identify.branding", "{icon_title = 'x'}"),
        ("identify.branding", "{icon = 'i.png'}"),
        ("identify.branding", f"{{{ICON}, colour = 'red'}}"),
        ("identify.branding", f"{{{ICON}, icon_width = 0}}"),
        ("identify.branding", f"{{{ICON}, icon_width = '88'}}"),
        ("identify.branding", f"{{{ICON}, icon_height = true}}"),
        ("identify.branding", f"{{{ICON}, icon_title = ' '}}"),
        ("identify.branding", f"{{{ICON}, icon_link = 'x'}}"),
        ("identify.branding", "{rendering = 'x'}"),
        ("identify.branding", "{rendering = ['x']}"),
        ("identify.branding", f"{{rendering = [{{{STYLE}, more = 1}}]}}"),
        ("identify.branding", f"{{rendering = [{{{STYLE.replace('text/xsl', 'xsl')}}}]}}"),
        ("identify.branding", f"{{rendering = [{{{STYLE.replace('urn:a', 'a')}}}]}}"),
        ("identify.branding", f"{{rendering = [{{{STYLE.replace('urn:a', 'urn:a#b#c')}}}]}}"),
        ("identify.branding", "{rendering = [{url = 'http://a.cz/'}]}"),
        ("identify.eprints", '"x"'),
        ("identify.eprints", "{content = ''}"),
        ("identify.eprints", "{content = 1}"),
        ("identify.eprints", "{contents = 'x'}"),
        ("identify.eprints", '{content = "a\\u0000"}'),
        ("identify.eprints", '{content = "a\\u0085"}'),
        ("identify.eprints", '{content = "a\\uFFFE"}'),
        ("identify.descriptions", "'<a xmlns=\"urn:a\"/>'"),
        ("identify.descriptions", "[1]"),
        ("identify.descriptions", "['']"),
        ("identify.descriptions", "['text']"),
        ("identify.descriptions", "['<a/>']"),
        ("identify.descriptions", "['<a xmlns=\"urn:a\">']"),
        ("identify.descriptions", '[\'<a xmlns="urn:a"/><b xmlns="urn:a"/>\']'),
        ("identify.descriptions", "['<b:a/>']"),
        ("identify.descriptions", "['<a xmlns=\"a b\"/>']"),
        ("identify.descriptions", "['<a xmlns=\"relative\"/>']"),
        ("identify.descriptions", '[\'<a xmlns="urn:a"><b xmlns:c="ur=n:c"/></a>\']'),
        ("identify.descriptions", '[\'<a xmlns="urn:a" y:b=""/>\']'),
        ("identify.descriptions", "['<a xmlns=\"urn:a\">&nbsp;</a>']"),
        ("identify.descriptions", '[\'<?xml version="1.0"?><a xmlns="urn:a"/>\']'),
        ("identify.descriptions", '[\'<!DOCTYPE a [<!ENTITY b "c">]><a xmlns="urn:a">&b;</a>\']'),
        ("identify.descriptions", "['<a xmlns=\"http://www.openarchives.org/OAI/2.0/\"/>']"),
        (
            "identify.descriptions",
            "['<a xmlns=\"http://www.openarchives.org/OAI/2.0/oai-identifier\"/>']",
        ),
        ("identify.descriptions", "['<b:a xmlns:b=\"urn:b\"><c/></b:a>']"),
        ("identify.descriptions", '[\'<b:a xmlns:b="u:b"><d xmlns="u:d"/><c/></b:a>\']'),
        ("identify.descriptions", "['<a xmlns=\"\"><c/></a>']"),
        ("identify.data_url", "'/srv/store'"),
        ("identify.data_url", "'store'"),
        ("identify.data_url", "'file:///srv/store'"),
        ("identify.data_url", "'https://me:secret@a.cz/'"),
        ("identify.data_url", "'https://a.cz/?x'"),
        ("identify.data_url", "'s3://b'"),
        ("identify.data_url", "'s3://bucket/a b'"),
        ("identify.data_url", "'s3://bucket//a'"),
        ("rights.statement", "' '"),
        ("rights.statement", "'http://'"),
        ("rights.statement", "'https://a.cz/<b>'"),
        ("rights.statement", "['x']"),
        ("rights.statement", f"'{'x' * 2001}'"),
        ("rights.statement", f"'https://a.cz/{'x' * 2000}'"),
        ("rights.sets", "'x'"),
        ("rights.sets", "{'a b' = 'x'}"),
        ("rights.sets", "{a = ''}"),
        ("rights.sets", "{a = 1}"),
        ("rights.sets", f"{{a = '{'x' * 2001}'}}"),
        ("provenance.origin", "'crawls/'"),
        ("provenance.origin", "'https://a.cz/#'"),
    ],
)
def test_what_is_wrong_is_told_with_key_value_and_what_was_expected(key: str, value: str) -> None:
    section, _, name = key.partition(".")
    with pytest.raises(ConfigurationError) as refused:
        configuration.parse(f"[{section}]\n{name} = {value}", {})
    told = str(refused.value)
    assert told.startswith(f"sheaf.toml: {key} is ")
    assert ", expected " in told
    assert "\n" not in told
    assert "secret" not in told
    assert "xmlns:xsi" not in told.partition(", expected ")[2]  # each has a fault of its own


@pytest.mark.parametrize(
    "attributes",
    [
        "",
        f'xmlns:xsi="{XSI}"',
        f'xmlns:xsi="{XSI}" xsi:schemaLocation=""',
        f'xmlns:xsi="{XSI}" xsi:schemaLocation="urn:a"',
        f'xmlns:xsi="{XSI}" xsi:schemaLocation="urn:b http://a.cz/a.xsd"',
        f'xmlns:xsi="{XSI}" xsi:schemaLocation="urn:a http://a.cz/a.xsd urn:b"',
        f'xmlns:xsi="{XSI}" xsi:schemaLocation="urn:a a.xsd"',
        f'xmlns:xsi="{XSI}" xsi:noNamespaceSchemaLocation="http://a.cz/a.xsd"',
        'xmlns:xsi="urn:xsi" xsi:schemaLocation="urn:a http://a.cz/a.xsd"',
    ],
)
def test_a_description_without_its_schema_is_refused(attributes: str) -> None:
    texts = f"['<a xmlns=\"urn:a\" {A}/>', '<a xmlns=\"urn:a\" {attributes}/>']"
    with pytest.raises(ConfigurationError) as refused:
        configuration.parse(f"[identify]\ndescriptions = {texts}", {})
    told = str(refused.value)
    assert told.startswith("sheaf.toml: identify.descriptions[1] is ")
    assert f'add xmlns:xsi="{XSI}" xsi:schemaLocation="urn:a https://..."' in told


def test_the_documented_examples_are_taken() -> None:
    document = (Path(__file__).parents[3] / "docs" / "reference" / "oai-pmh.md").read_text("utf-8")
    (example,) = re.findall(r"```toml\n(\[repository\].*?)```", document, re.DOTALL)
    assert len(configuration.parse(example, {})["identify.descriptions"]) == 1


def test_a_value_of_many_lines_is_told_in_one_and_a_long_one_is_cut() -> None:
    with pytest.raises(ConfigurationError) as refused:
        configuration.parse("[identify]\ndescriptions = ['''a\n''', '" + "b" * 10_000 + "']", {})
    assert str(refused.value).startswith('sheaf.toml: identify.descriptions is ["a\\n", "bbb')
    assert len(str(refused.value)) < 800


def test_the_environment_holds_tables_too() -> None:
    read = configuration.parse(
        "",
        {
            "SHEAF_IDENTIFY_FRIENDS": '["http://a.cz/oai"]',
            "SHEAF_RIGHTS_SETS": '{"mime:text" = "Free"}',
            "SHEAF_PROVENANCE_ORIGIN": "http://a.cz/",
        },
    )
    assert read["identify.friends"] == ["http://a.cz/oai"]
    assert read["rights.sets"] == {"mime:text": "Free"}
    assert read["provenance.origin"] == "http://a.cz/"


def test_what_the_template_writes_is_read_back() -> None:
    given = {
        "identify.descriptions": [f'<a xmlns="urn:a" {A}>\\\n\t\x7f\u202e</a>'],
        "rights.sets": {"mime:text": 'A "word" \\ and\nmore'},
        "identify.eprints": {"content": "a\u0301"},
    }
    read = configuration.parse(configuration.template(given), {})
    assert {name: read[name] for name in given} == given
