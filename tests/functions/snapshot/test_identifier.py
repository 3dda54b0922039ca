import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.snapshot import oai_name


def test_an_identity_is_the_same_for_ever() -> None:
    made = oai_name.capture_identity(
        b"http://a.cz/", "2007-11-05T00:00:00Z", 200, "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    )
    assert made == "a42bbrnrbmevcd4wra4myjtn"


parts = st.tuples(
    st.binary(max_size=20),
    st.none() | st.text(max_size=5),
    st.none() | st.integers(0, 999),
    st.none() | st.text(max_size=5),
    st.integers(0, 3),
)


def plain(part: tuple[bytes, str | None, int | None, str | None, int]) -> object:
    url, date, status, digest, ordinal = part
    return url, date or "", status, digest or "", ordinal


@given(parts, parts)
def test_different_captures_have_different_identities(
    one: tuple[bytes, str | None, int | None, str | None, int],
    other: tuple[bytes, str | None, int | None, str | None, int],
) -> None:
    if "\n" in f"{one[1]}{one[3]}{other[1]}{other[3]}":
        return  # neither a date nor a digest can hold a line break
    same = oai_name.capture_identity(*one) == oai_name.capture_identity(*other)
    assert same == (plain(one) == plain(other))


@settings(deadline=None)
@given(st.text(max_size=60))
def test_the_lookup_key_is_the_same_in_python_and_in_sql(text: str) -> None:
    if "\0" in text:
        return
    (row,) = duckdb.execute(
        f"SELECT {oai_name.LOOKUP_KEY} FROM (SELECT $text AS identifier)", {"text": text}
    ).fetchall()
    assert row == (oai_name.lookup_key(text),)
    assert 0 <= row[0] < 1 << 63


def test_a_namespace_is_a_dotted_domain_name() -> None:
    assert oai_name.is_namespace("archive.example.org")
    for wrong in ("example", "a b.cz", "1.2", "a..b", ".a.b", "a.b/", ""):
        assert not oai_name.is_namespace(wrong)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(texts, texts, texts, st.lists(texts, min_size=1, max_size=3))
def test_each_identifier_of_a_store_has_its_form(
    platform: str, domain: str, name: str, levels: list[str]
) -> None:
    space = "archive.example.org"
    dataset = oai_name.to_oai(space, oai_name.dataset_identity(platform, domain, name))
    local = oai_name.capture_identity(name.encode(), None, None, None)
    for identifier in (
        dataset,
        oai_name.version_identity(dataset, name),
        oai_name.harvested_identifier(space, domain, name),
        oai_name.collection_identifier(space, oai_name.join_set("collection", *levels)),
        oai_name.to_oai(space, local),
    ):
        assert oai_name.is_own(identifier, space, "")
        assert not oai_name.is_own(identifier, "other.example.org", "oai:")
    for prefix in ("oai:", "oai:other.example.org:"):
        for handle in (f"RePEc:{name}", name or "x", "pka1"):
            handle = oai_name.canonical_handle(handle)
            assert oai_name.is_own(oai_name.template_identifier(prefix, handle), space, prefix)
    for doi in ("10.5072/a", "doi:10.5072/a", "https://doi.org/10.5072/a"):
        assert not oai_name.is_own(doi, space, "oai:")
        assert not oai_name.is_own(f"oai:{space}:{doi}", space, "oai:")
