"""Texts become words, in Python and in SQL alike, and queries become terms."""

import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builder.snapshot.word_rows.cut import _PLAIN, _list_of, cut_words
from functions.kinds import HARVESTED, RECORD, TEMPLATE, ItemKind
from functions.search import words
from functions.search.query import LONGEST, SearchQueryError, WordQuery, mark, parse
from functions.snapshot import oai_name, schema
from functions.store import engine
from tests.extent import examples

pytestmark = pytest.mark.shared(2)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Knižnice ŠKOLY — 2007", ["kniznice", "skoly", "2007"]),
        ("Straße Łódź Ærø ĐÀ", ["strasse", "lodz", "aero", "da"]),
        ("ﬁne Ａ１ it's_so", ["fine", "a1", "it", "s", "so"]),
        ("東京都 の 図書館", ["東京", "京都", "都", "の", "図書", "書館", "館"]),
        ("도서관 ดี Ёж", ["도서", "서관", "관", "ดี", "ี", "еж"]),
        ("हिन्दी", ["हिन्दी"]),
        ("x" * 50, ["x" * words.LONGEST]),
        ("", []),
    ],
)
def test_the_words_of_a_text(text: str, found: list[str]) -> None:
    assert list(words.table_words(words.pieces(text))) == found


def test_the_words_of_a_url() -> None:
    url = "http://u@www.xn--kniha-n0a.cz/%C4%8Cl%C3%A1nek/1234567890/12345678901?s=ab4567890123"
    found = words.url_pieces("www.xn--bcher-kva.example", url)
    assert found == ["www", "bucher", "example", "clanek", "1234567890", "s"]
    assert words.url_pieces(None, "dns:a.cz") == ["dns", "a", "cz"]


def cut(
    folder: Path, rows: list[tuple[object, ...]], names: list[str] | None = None
) -> set[tuple[str, int]]:
    """Return what a publish makes of records: kind, host, URL, title, document, status, SURT,
    domain.

    The last three may be missing. `names` are their identifiers.
    """
    names = names or [f"oai:{n}" for n in range(1, len(rows) + 1)]
    path = folder / "records.parquet"
    connection = engine.connect()
    columns = ", ".join(f"{c.name} {c.type}" for c in schema.TABLES["records"])
    connection.execute(f"CREATE TABLE records ({columns})")
    connection.executemany(
        "INSERT INTO records (position, identifier, kind, deleted, url_host_name, url, title, "
        "document, fetch_status, url_surtkey, url_host_registered_domain) "
        "VALUES ($1, $2, $3, false, $4, $5, $6, $7, $8, $9, $10)",
        [
            (n, name, *row, *(None,) * (8 - len(row)))
            for n, (name, row) in enumerate(zip(names, rows, strict=True), 1)
        ],
    )
    connection.execute(f"COPY (FROM records ORDER BY position) TO '{path}'")
    found = cut_words(connection, folder, [str(path)])
    sql = f"SELECT word, unnest(range(position, position + following + 1)) FROM ({found.query[0]})"
    result = set(connection.execute(sql, found.query[1]).fetchall())
    found.remove()
    connection.close()
    return result


_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)
_DOMAINS = {
    "www.a.cz": "a.cz",
    "xn--bcher-kva.de": "xn--bcher-kva.de",
    "h.c.b.cz": "b.cz",
    None: None,
}
_URL = st.text(st.sampled_from("ab19/%C4ž?=:. 漢xn-"), max_size=30)


@settings(max_examples=examples(15), deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["www.a.cz", "www.a.cz", "xn--bcher-kva.de", "h.c.b.cz", None]),
            st.one_of(_URL, _URL.map("http://www.a.cz/".__add__), _TEXT),
            st.one_of(st.none(), _TEXT, st.text("aábÉž –1 ", max_size=99)),
            st.sampled_from([None, 200, 404]),
            st.sampled_from([None, "cz,a)/", "cz,a)/x"]),
        ),
        min_size=1,
        max_size=12,
    )
)
@example(rows=[(None, "http://a", "İ Ǆ ſ ς" + "a " * 200, 200, "cz,a)/")])
def test_sql_and_python_cut_alike(
    rows: list[tuple[str | None, str, str | None, int | None, str | None]],
) -> None:
    expected = {
        (words.with_rank(word, rank + (rank == words.HOST and word == site_of(host))), position)
        for position, (host, url, title, status, surt) in enumerate(rows, 1)
        for pieces, rank in (
            (words.pieces(title or ""), words.rank_page(status, surt)),
            (words.host_pieces(host), words.HOST * (words.rank_page(status, surt) == words.HOME)),
            (words.path_pieces(url), 0),
        )
        for word in words.table_words(pieces)
    }
    with TemporaryDirectory() as folder:
        records = [("capture", *row[:3], None, *row[3:], _DOMAINS[row[0]]) for row in rows]
        assert cut(Path(folder), records) == expected


def site_of(host: str | None) -> str | None:
    return words.site_word(_DOMAINS[host])


_TEXTS = st.lists(st.one_of(_TEXT, st.sampled_from(["", "[A] b", "{}"])), max_size=3)
_PEOPLE = st.lists(
    st.one_of(_TEXTS.map(lambda names: {"name": names}), st.just("A name")), max_size=2
)
_LISTS = ("title", "name", "name-full", "classification-jel")
_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(_LISTS, st.one_of(_TEXTS, st.just([{"a": ["b"]}]))),
        **dict.fromkeys(("primary", "author", "editor"), _PEOPLE),
    },
)


_HANDLES = st.sampled_from(["RePEc:aaa:s:1", "RePEc:aaa:s:2", "RePEc:aaa:s:a b", "x" * 300])
_TEMPLATES = st.tuples(
    _HANDLES.map(partial(oai_name.template_identifier, "oai:a-b.cz:")), _HANDLES, _FIELDS
).map(lambda row: (row[0], {"handle": row[1], "fields": row[2]}))
_ELEMENTS = st.builds(
    "<{0}{1}{2}>{3}</{0}{1}>".format,
    st.sampled_from(["", "dc:", "é:", "a-b:", "a·:"]),
    st.sampled_from(["title", "creator", "identifier", "subject", "titles"]),
    st.sampled_from(["", " xml:lang='cs>'", "\nid=''", " é='ž'"]),
    st.one_of(_TEXT, st.text("aÁéžŁœß &amp;–漢", max_size=40)).map(
        lambda text: text.replace("<", "&lt;")
    ),
)
_ENTRIES = st.lists(_ELEMENTS, max_size=5).map(
    lambda texts: {"metadata": f"<a>{''.join(texts)}</a>"}
)
_HARVESTED = st.tuples(
    st.sampled_from(["oai:a.cz:1", "oai:a.cz:2", "oai:b.cz:harvested,a.cz,1", "oai:é"]),
    st.fixed_dictionaries(
        {"id": st.sampled_from(["oai:a.cz:1", "a.cz:1", "1 & 2"])},
        optional={"records": st.lists(_ENTRIES, max_size=3)},
    ),
)


_OWN = st.tuples(
    st.sampled_from(["oai:a.cz:books,1", "oai:a.cz:books,é"]),
    st.fixed_dictionaries(
        {"id": st.sampled_from(["1", "1 & 2"])},
        optional={
            "title": _TEXT,
            "creators": _TEXTS,
            "subjects": _TEXTS,
            "records": st.lists(_ENTRIES, max_size=3),
        },
    ),
)


@pytest.mark.parametrize(
    ("kind", "items"), [(TEMPLATE, _TEMPLATES), (HARVESTED, _HARVESTED), (RECORD, _OWN)]
)
def test_sql_and_python_cut_documents_alike(
    kind: ItemKind, items: st.SearchStrategy[tuple[str, dict[str, object]]]
) -> None:
    @settings(max_examples=examples(25), deadline=None)
    @given(rows=st.lists(items, min_size=1, max_size=8))
    def check(rows: list[tuple[str, dict[str, object]]]) -> None:
        expected = {
            (words.with_rank(word, words.PAGE), position)
            for position, (name, document) in enumerate(rows, 1)
            for text in kind.list_texts(document, name)
            for word in words.table_words(words.pieces(text))
        }
        documents = [(kind.name, None, None, None, json.dumps(row)) for _, row in rows]
        with TemporaryDirectory() as folder:
            assert cut(Path(folder), documents, [name for name, _ in rows]) == expected

    check()


def test_plain_texts_are_cut_in_sql_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(words, "pieces")
    xml = "<dc:title>Łódź – Straße Ёж, œuvre</dc:title><dc:creator>Bjørn</dc:creator>"
    row = ("harvested", None, None, None, json.dumps({"id": "1", "records": [{"metadata": xml}]}))
    expected = {"lodz", "strasse", "еж", "oeuvre", "bjorn", "oai", "1"}
    assert cut(tmp_path, [row]) == {(words.with_rank(word, words.PAGE), 1) for word in expected}


def test_each_letter_that_sql_folds_is_folded_alike() -> None:
    letters = [chr(n) for n in range(1, 0x3000) if not 0xD800 <= n < 0xE000]
    connection = engine.connect()
    rows = connection.execute(
        f"SELECT text, {_list_of('text')} FROM (SELECT unnest([c, 'a' || c || 'b']) AS text FROM "
        f"(SELECT unnest($letters) AS c) WHERE regexp_full_match(c, '{_PLAIN}'))",
        {"letters": letters},
    ).fetchall()
    connection.close()
    assert len(rows) > 1000
    assert [text for text, parts in rows if parts != words.pieces(text)] == []


def test_the_words_of_other_items(tmp_path: Path) -> None:
    dataset = {"title": "Soil", "creators": [{"name": "Doe"}], "doi": "10.5/x", "published": "2011"}
    found = cut(tmp_path, [("fileset", None, None, None, json.dumps(dataset))])
    assert {word.rstrip("\1") for word, _ in found} == {"soil", "doe", "10", "5", "x", "oai", "1"}
    xml = '<dc xmlns:dc="urn:dc"><dc:creator>B</dc:creator><dc:title>A &amp; Z</dc:title></dc>'
    assert HARVESTED.title({"id": "oai:x:9", "records": [{"metadata": xml}]}) == "A & Z"
    assert TEMPLATE.date({"fields": {"creation-date": ["2007-05"]}}) == "2007-05"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "empty"),
        ("-a !?", "empty"),
        ('"a', "quote"),
        ("a*", "short"),
        ("x " * 13, None),
        (" ".join(f"w{n}" for n in range(13)), "many"),
        ("x" * (LONGEST + 1), "long"),
        ('"' + "x " * 41 + '"', "phrase"),
    ],
)
def test_a_query_that_cannot_be(given: str, message: str | None) -> None:
    if message is None:
        assert len(parse(given).terms) == 1
        return
    with pytest.raises(SearchQueryError, match=message):
        parse(given)


def test_filters_that_cannot_be() -> None:
    for wrong in ({"set": "a b"}, {"kind": "page"}, {"since": "x"}, {"since": 2001, "until": 2000}):
        with pytest.raises(SearchQueryError):
            parse("a", **wrong)  # type: ignore[arg-type]
    assert parse("a", "", "", "", "") == WordQuery("a", parse("a").terms)


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("Nové Knižnice v knize", "kniz* KNIZE", ["Knižnice", "knize"]),
        ("The harvest, November 2007", '"harvest november"', ["harvest, November"]),
        ("東京都図書館", "京都", ["京都"]),
        ("http://www.a.cz/x-y", "a.cz/x -y", ["a.cz/x"]),
        ("no match", "other", []),
        ("a", "a", ["a"]),
        ("", "a", []),
    ],
)
def test_the_marks_of_a_text(text: str, query: str, marked: list[str]) -> None:
    pieces = mark(text, parse(query))
    assert "".join(piece for piece, _ in pieces) == text
    assert [piece for piece, is_match in pieces if is_match] == marked
