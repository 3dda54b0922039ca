"""Profiles: each mutation of a good record is found by the right rule, and by no other."""

import copy
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from lxml import etree

from builder.check.checks import CheckCard, load_checks
from builder.check.profiles import OBLIGATIONS, list_profiles, open_profiles, open_schema
from builder.check.records import check_records
from builder.check.sample import SampledRecord
from builder.errors import UsageError
from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import items
from tests.e2e.conftest import sheaf

RECORDS = Path(__file__).parent / "records"
SHARED = Path(__file__).parents[3].parent / "shared/data"
PROFILES = ("datacite", "edm", "marc21", "mods", "oai_dc", "openaire")

MUTATIONS = (
    # profile, text of the record, text in its place, checks that have to find it
    ("oai_dc", "<dc:title>Ågrens mill: À la carte, &lt; 5 µm, CAFÉ”</dc:title>", "", "DC-01"),
    ("oai_dc", "<dc:creator>Dvořák, Jiří</dc:creator>", "", "DC-02"),
    ("oai_dc", "semantics/embargoedAccess", "semantics/embargoed", "DC-03"),
    ("oai_dc", "info:eu-repo/semantics/article", "Article", "DC-05"),
    ("oai_dc", "https://doi.org/10.1234/mill(1)&lt;5::aid&gt;2.0", "mill 1", "DC-06"),
    ("oai_dc", "<dc:date>info:eu-repo/date/embargoEnd/2025-01-01</dc:date>", "", "DC-07"),
    ("oai_dc", "grantAgreement/EC/H2020/643410/EU/OpenAIRE", "grantAgreement/EC", "DC-12"),
    ("oai_dc", "dc:publisher>", "oai_dc:publisher>", "R07 DC-09"),
    ("openaire", "Novak, Jan</", " </", "OPENAIRE-02"),
    ("openaire", ">643410<", "><", "OPENAIRE-04"),
    ("openaire", ">Example Press<", "><", "R10 OPENAIRE-07"),
    ("openaire", 'dateType="Issued"', 'dateType="Updated"', "OPENAIRE-08"),
    ("openaire", 'dateType="Issued"', 'dateType="issued"', "R08 OPENAIRE-08"),
    ("openaire", 'dateType="Available"', 'dateType="Valid"', "OPENAIRE-05"),
    ("openaire", 'General="literature"', 'General="publication"', "R08"),
    ("openaire", "resource_type/c_6501", "resource_type/c_0000", "R08"),
    ("openaire", "https://example.org/items/1<", "items/1<", "OPENAIRE-12"),
    ("openaire", 'uri="https://creativecommons.org/licenses/by/4.0/"', "", "OPENAIRE-15"),
    ("openaire", "https://example.org/items/1.pdf", "1.pdf", "OPENAIRE-17"),
    ("datacite", "10.1234/mills.2024", "mills.2024", "DATACITE-02"),
    ("datacite", "https://orcid.org/0000-0002-1825-0097", "Novak", "DATACITE-15"),
    ("datacite", "<publicationYear>2024<", "<publicationYear>24<", "R08"),
    ("datacite", "<publisher>Example Archive</publisher>", "", "R08 DATACITE-05"),
    ("datacite", '"Available">2025-01-01', '"Updated">2025-01-01', "DATACITE-08"),
    ("datacite", "http://purl.org/coar/access_right/c_f1cf", "", "DATACITE-09"),
    ("datacite", ">10.1234/mill.1<", "><", "DATACITE-14"),
    ("datacite", 'relationType="IsSupplementTo"', 'relationType="Supplements"', "R08"),
    ("datacite", "52.1<", "152.1<", "R08"),
    ("edm", "<dc:language>cs</dc:language>", "", "EDM-05"),
    ("edm", '<dc:subject xml:lang="en">mills</dc:subject>', "", "EDM-06"),
    ("edm", 'CHO rdf:resource="https://example.org/objects/1', 'CHO rdf:resource="x', "EDM-03"),
    ("edm", "<edm:dataProvider>Example Library</edm:dataProvider>", "", "EDM-07"),
    ("edm", '"https://example.org/objects/1.html"', '"/objects/1.html"', "EDM-10"),
    ("edm", "http://rightsstatements.org/vocab", "https://rightsstatements.org/vocab", "EDM-12"),
    ("edm", "<edm:type>TEXT", "<edm:type>Text", "R08"),
    ("edm", "<edm:provider>Example Aggregator</edm:provider>", "", "R08 EDM-08"),
    ("mods", "<typeOfResource>text</typeOfResource>", "", "MODS-02"),
    ("mods", "<dateCreated>c1904", '<dateCreated keyDate="yes">1904', "MODS-04"),
    ("mods", "<url>", '<url usage="primary">', "MODS-07"),
    ("mods", '<roleTerm type="text">author<', '<roleTerm type="text"><', "MODS-13"),
    ("mods", '"iso639-2b">eng</languageTerm></language>', '"iso639-2b"/></language>', "MODS-10"),
    ("marc21", '<controlfield tag="001">1905001</controlfield>', "", "MARC-02"),
    ("marc21", "050301s1905    xr            000 0 eng d", "050301s1905", "MARC-04"),
    ("marc21", "000 0 eng d", "000 0 Eng d", "MARC-05"),
    ("marc21", 'tag="245" ind1="1" ind2="4"', 'tag="246" ind1="1" ind2="4"', "MARC-06"),
    ("marc21", 'tag="650" ind1=" "', 'tag="110" ind1=" "', "MARC-08"),
    ("marc21", ">Mills<", "> <", "MARC-10"),
    ("marc21", "20240229120000.0", "2024-02-29", "MARC-11"),
    ("marc21", "00000cam a2200000", "00000cam  2200000", "MARC-12"),
    ("marc21", 'ind1="1" ind2="4"', 'ind1="X" ind2="4"', "R08"),
)


def judge(text: str, *names: str) -> Mapping[str, str]:
    """Return what each check sees in a record, by the rules of profiles."""
    card = CheckCard()
    record = SampledRecord("oai:example.org:1", "", False, (), "p", text.encode(), 0)
    check_records([record], open_profiles(names), card, [], {})
    return {number: findings[0].seen for number, findings in card.findings.items()}


def mutate(profile: str, old: str, new: str) -> str:
    """Return a good record in which one thing is otherwise."""
    text = (RECORDS / f"{profile}.xml").read_text("utf-8")
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_good_record_is_good_by_every_rule(profile: str) -> None:
    assert judge((RECORDS / f"{profile}.xml").read_text("utf-8"), profile) == {}


@pytest.mark.parametrize(("profile", "old", "new", "numbers"), MUTATIONS)
def test_a_mutation_is_found_by_the_right_rule_alone(
    profile: str, old: str, new: str, numbers: str
) -> None:
    assert set(judge(mutate(profile, old, new), profile)) == set(numbers.split())


def test_rules_apply_only_where_they_are_asked_for_and_where_there_is_something() -> None:
    text = mutate("oai_dc", "<dc:creator>Dvořák, Jiří</dc:creator>", "")
    text = text.replace("info:eu-repo/grantAgreement/EC/H2020/643410/EU/OpenAIRE", "x")
    assert judge(text) == {}
    record = SampledRecord("oai:example.org:1", "", False, (), "p", text.encode(), 0)
    check_records([record], open_profiles(["oai_dc", "edm"]), card := CheckCard(), [], {})
    assert set(card.findings) == {"DC-02"}
    assert "DC-07" in card.applied
    assert not card.applied & {"DC-12", "EDM-01"}
    assert card.reasons["DC-12"] == "no record of the sample has what the rule is about"
    assert card.reasons["EDM-01"] == "no record of the sample has this format"


@pytest.mark.parametrize(
    ("profile", "old", "new", "number", "seen"),
    [
        ("oai_dc", "semantics/embargoed", "x", "DC-03", "dc:rights is 'info:eu-repo/xAccess'"),
        ("marc21", 'tag="001"', 'tag="002"', "MARC-02", "no marc:controlfield[@tag = '001']"),
        ("edm", '"https://example.org/objects/1.html', '"x', "EDM-10", '<isShownAt resource="x">'),
        ("openaire", "dc:language>", "dc:lang>", "R08", "it would be valid without <lang> eng"),
        ("datacite", ">2024<", ">24<", "R08", "Error validating datatype token; "),
    ],
)
def test_a_finding_shows_what_is_wrong(
    profile: str, old: str, new: str, number: str, seen: str
) -> None:
    assert judge(mutate(profile, old, new), profile)[number].startswith(seen)


def test_an_older_kernel_has_the_same_rules_but_another_schema() -> None:
    text = (RECORDS / "datacite.xml").read_text("utf-8").replace("kernel-4", "kernel-3")
    assert judge(text, "datacite") == {}
    text = text.replace('"DataCollector"', '"Funder"').replace("Turns of mills", "")
    assert set(judge(text, "datacite")) == {"DATACITE-04", "R10"}
    assert set(judge(text.replace('"', "'"), "datacite")) == {"DATACITE-04", "R10"}
    assert judge(text.replace("kernel-3", "kernel-2.0"), "datacite").keys() == {"R10"}


def test_nested_classes_break_the_schema_of_edm_and_no_rule() -> None:
    text = mutate("edm", '<edm:aggregatedCHO rdf:resource="https://example.org/objects/1"/>', "")
    before, begin, rest = text.partition("<edm:ProvidedCHO")
    body, end, after = rest.partition("</edm:ProvidedCHO>")
    place = '<ore:Aggregation rdf:about="https://example.org/aggregations/1">'
    nested = f"{place}<edm:aggregatedCHO>{begin}{body}{end}</edm:aggregatedCHO>"
    assert set(judge(before + after.replace(place, nested), "edm")) == {"R08"}


def test_a_handle_is_written_as_the_schema_or_as_the_guidelines_have_it() -> None:
    for name in ("HANDLE", "Handle"):
        assert judge(mutate("openaire", '="URL">https', f'="{name}">https'), "openaire") == {}
    assert set(judge(mutate("openaire", '="URL">https', '="handle">https'))) == {"R08"}


def test_other_rdf_is_not_taken_for_edm() -> None:
    text = '<RDF xmlns="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><Description/></RDF>'
    assert set(judge(text, "edm")) == {"R05", "R10"}


def test_the_files_of_profiles_are_whole() -> None:
    profiles = list_profiles()
    assert tuple(sorted(profiles)) == PROFILES
    numbers = [rule.number for profile in profiles.values() for rule in profile.rules]
    assert len(numbers) == len(set(numbers)) >= 80
    assert not load_checks().keys() & set(numbers)
    for name, profile in profiles.items():
        root = etree.parse(RECORDS / f"{name}.xml").getroot()
        assert profile.select(root, profile.record)
        for rule in profile.rules:
            assert rule.obligation in OBLIGATIONS
            profile.select(root, rule.at)
            profile.select(root, rule.test)
        assert list(profile.checks()) == [rule.number for rule in profile.rules]
    with pytest.raises(UsageError, match="--profile: x is none of"):
        open_profiles(["edm", "x"])


@pytest.mark.parametrize(
    ("file", "numbers"),
    [
        ("sample_minimal", "OPENAIRE-07 OPENAIRE-10 OPENAIRE-14 OPENAIRE-16"),
        # It has no date of publication, which the guidelines make mandatory, and is valid.
        ("sample_journalarticle1", "OPENAIRE-08"),
        ("mocksample", "R08 R10 R14 OPENAIRE-06 OPENAIRE-07 OPENAIRE-10 OPENAIRE-17"),
    ],
)
def test_samples_of_openaire_are_judged_as_openaire_does(file: str, numbers: str) -> None:
    path = SHARED / f"profiles/openaire/samples/{file}.xml"
    if not path.is_file():
        pytest.skip("samples of OpenAIRE are NOT judged here: no ../shared/data")
    assert set(judge(path.read_text("utf-8"), "openaire")) == set(numbers.split())


def open_official(path: Path) -> etree.XMLSchema:
    """Return an official schema; what it imports from the network is beside it."""

    class Local(etree.Resolver):
        def resolve(self, url: str, public_id: str, context: object) -> object:
            name = url.rpartition("/")[2]
            places = (path.parent / name, SHARED / "xsd/oai" / name)
            place = next((place for place in places if place.is_file()), None)
            return self.resolve_filename(str(place), context) if place else None

    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(Local())
    return etree.XMLSchema(etree.parse(path, parser))


def mutate_schema(text: str, seed: int) -> str:
    """Return a record in which elements or attributes were removed, doubled, moved or renamed."""
    rng = random.Random(seed)
    root = etree.fromstring(text)
    root = next(root.iter("{*}resource"), root)
    element = rng.choice([e for e in root.iter(etree.Element) if e is not root])
    kind = rng.choice(("drop", "double", "move", "rename", "attribute"))
    parent = element.getparent()
    assert parent is not None
    if kind == "drop":
        parent.remove(element)
    elif kind == "double":
        parent.insert(parent.index(element), copy.deepcopy(element))
    elif kind == "move":
        parent.insert(rng.randrange(len(parent)), element)
    elif kind == "rename":
        element.tag += "s"
    elif element.keys() and rng.random() < 0.5:
        del element.attrib[rng.choice(element.keys())]
    else:
        element.set("other", "x")
    return etree.tostring(root, encoding="unicode")


def test_the_command_judges_by_the_profiles_that_are_named(tmp_path: Path) -> None:
    config = tmp_path / "sheaf.toml"
    config.write_text("[http]\nhost_seconds = 0\n")
    with serving(items(3)) as provider:
        line = ("check", provider.url, "--json", "--config", config)
        report = sheaf(*line, "--profile", "oai_dc", "--profile", "edm").json
        assert sheaf(*line, "--profile", "x").code == 2
    assert report["profiles"] == ["oai_dc", "edm"]
    states = {row["number"]: (row["state"], row["count"]) for row in report["checks"]}
    assert states["DC-03"] == ("failed", 3)
    assert states["EDM-01"] == ("not checked", 0)
    assert states["R08"] == ("passed", 0)


OFFICIAL = {
    "datacite": "xsd/datacite/kernel-4.6/metadata.xsd",
    "edm": "profiles/edm/EDM.xsd",
    "marc21": "xsd/common/MARC21slim.xsd",
    "oai_dc": "xsd/oai/oai_dc.xsd",
    "openaire": "profiles/openaire/schemas/4.0/openaire.xsd",
}


@pytest.mark.parametrize("profile", OFFICIAL)
def test_schemas_of_our_own_judge_as_the_official_ones(profile: str) -> None:
    path = SHARED / OFFICIAL[profile]
    if not path.is_file():
        pytest.skip("schemas are NOT compared to the official ones here: no ../shared/data")
    official, own = open_official(path), open_schema(list_profiles()[profile].schema)
    texts = [(RECORDS / f"{profile}.xml").read_text("utf-8")]
    texts += [mutate(*row[:3]) for row in MUTATIONS if row[0] == profile]
    texts += [mutate_schema(texts[0], number) for number in range(200)]
    verdicts = []
    for text in texts:
        root = etree.fromstring(text)
        inner = next(root.iter("{*}resource"), root)  # without the wrapper of oai_datacite
        verdict = official.validate(inner)
        assert own.validate(inner) == verdict, (text, official.error_log, own.error_log)
        verdicts.append(verdict)
    assert verdicts[0]
    assert 20 < verdicts.count(False) < len(verdicts) - 20
