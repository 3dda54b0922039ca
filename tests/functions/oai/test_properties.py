"""Any request gives a valid document and a right error; any paging gives each record once."""

import base64
from datetime import timedelta
from urllib.parse import quote_from_bytes

from hypothesis import example, given, settings
from hypothesis import strategies as st

from functions.oai.request import CODES, VERBS
from tests.extent import examples
from tests.functions.oai.client import START, Client, Clock, content, event, respond
from tests.functions.oai.memory import MemoryRepository, capture
from tests.functions.oai.validity import codes, valid

NAMES = [f"oai:example.org:{n:02}" for n in range(20)]
FORM = {"content-type": "application/x-www-form-urlencoded"}


def filled() -> MemoryRepository:
    repository = MemoryRepository()
    items = {n: capture(f"http://{n}/", "mime:a:b", "domain:cz") for n in NAMES[:6]}
    repository.publish(items, START - timedelta(hours=2))
    repository.publish({NAMES[1]: None}, START - timedelta(hours=1))
    return repository


CLIENT = Client(filled(), pages_records=2, pages_identifiers=3, pages_sets=2)
TOKENS = [
    CLIENT.get(verb, **arguments).next
    for verb, arguments in (
        ("ListRecords", {"metadataPrefix": "oai_dc"}),
        ("ListIdentifiers", {"metadataPrefix": "oai_dc", "set": "mime:a"}),
        ("ListSets", {}),
    )
]
KEYS = ["verb", "identifier", "metadataPrefix", "from", "until", "set", "resumptionToken"]
GOOD = {
    "verb": [*VERBS],
    "identifier": [*NAMES[:3], "oai:none:here", 'in"valid', "a b", "%41"],
    "metadataPrefix": ["oai_dc", "marc"],
    "from": ["2026-03-01", "2026-03-01T10:30:00Z", "1900-01-01"],
    "until": ["2026-03-01", "2026-03-01T10:30:00Z", "2999-01-01T00:00:00Z"],
    "set": ["mime", "mime:a:b", "nope"],
    "resumptionToken": TOKENS,
}
_hostile = st.binary(max_size=20) | st.text(max_size=20).map(lambda t: t.encode("utf-8", "replace"))


@st.composite
def values(draw, key: bytes):
    good = [v.encode() for v in GOOD.get(key.decode("latin-1"), ["x"])]
    value = draw(st.sampled_from(good))
    how = draw(st.integers(0, 9))
    if how == 0:
        return draw(_hostile)
    if how == 1 and value:  # tampered with
        place = draw(st.integers(0, len(value) - 1))
        return value[:place] + draw(st.binary(max_size=2)) + value[place + 1 :]
    return value


@st.composite
def pairs(draw):
    """Return pairs of bytes: mostly a verb with arguments of its own, sometimes anything."""
    verb = draw(st.sampled_from([*VERBS]))
    table = VERBS[verb]
    keys = ["verb", *draw(st.sampled_from([table.required, (table.exclusive,), ()]))]
    keys += draw(st.lists(st.sampled_from([*table.optional, *table.optional, *KEYS]), max_size=2))
    names = [k.encode() for k in keys if k]
    names += draw(st.lists(_hostile, max_size=1)) if draw(st.integers(0, 5)) == 0 else []
    result = [(n, verb.encode() if n == b"verb" else draw(values(n))) for n in names]
    if draw(st.integers(0, 9)) == 0:
        result[0] = (b"verb", draw(_hostile))
    return draw(st.permutations(result))


def encoded(rows) -> str:
    return "&".join(f"{quote_from_bytes(k)}={quote_from_bytes(v)}" for k, v in rows)


@settings(max_examples=examples(600), deadline=None)
@given(pairs(), st.sampled_from(["GET", "POST", "POST64"]), st.sampled_from(["", "gzip"]))
def test_any_request_is_answered(rows, how, accepted):
    query = encoded(rows)
    headers = {**FORM, "accept-encoding": accepted}
    if how == "GET":
        call = event(query, headers=headers)
    else:
        body = base64.b64encode(query.encode()).decode() if how == "POST64" else query
        call = event(method="POST", headers=headers, body=body, encoded=how == "POST64")
    reply = respond(CLIENT.application, call)
    assert reply["statusCode"] == 200
    found = codes(valid(content(reply)))
    assert set(found) <= CODES
    expected = expected_errors(rows)
    if expected:
        assert set(found) == expected
    else:
        assert not {"badVerb", "badArgument"} & set(found) or unfit(rows)


@example(b"verb=GetRecord&identifier=%00&metadataPrefix=oai_dc")
@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_answered(query):
    for call in (
        event(query.decode("latin-1")),
        event(method="POST", headers=FORM, body=query.decode("latin-1")),
        event(method="POST", headers=FORM, body=base64.b64encode(query).decode(), encoded=True),
    ):
        reply = respond(CLIENT.application, call)
        assert reply["statusCode"] == 200
        assert codes(valid(content(reply)))


def expected_errors(rows) -> set[str]:
    """Return the errors that the shape of a request alone makes sure of."""
    keys = [k for k, _ in rows]
    verbs = [v for k, v in rows if k == b"verb"]
    if len(verbs) != 1 or verbs[0].decode("utf-8", "replace") not in VERBS:
        return {"badVerb"}
    table = VERBS[verbs[0].decode()]
    arguments = [k.decode("utf-8", "replace") for k in keys if k != b"verb"]
    if (
        len(set(arguments)) != len(arguments)
        or set(arguments) - table.known
        or any(not v for _, v in rows)
        or (table.exclusive in arguments and len(arguments) > 1)
        or (table.exclusive not in arguments and set(table.required) - set(arguments))
    ):
        return {"badArgument"}
    return set()


def unfit(rows) -> bool:
    """Tell whether a value is none of the good ones, or two dates do not go together."""
    given = dict(rows)
    dates = (given.get(b"from"), given.get(b"until"))
    return None not in dates or any(
        v.decode("latin-1") not in GOOD.get(k.decode(), ()) for k, v in rows
    )


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(NAMES), st.sampled_from([None, "a", "a:b", "c"]), min_size=1
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 12),
    st.sampled_from([None, "a", "a:b"]),
    st.sampled_from(["ListRecords", "ListIdentifiers"]),
    st.integers(0, 4),
)
def test_any_pages_of_any_snapshots_have_every_record_once(publishes, size, spec, verb, before):
    """The first `before` publishes come first, the others one by one between the pages."""
    repository, clock = MemoryRepository(), Clock()
    repository.publish({"oai:example.org:z": capture("http://z/", "a:b", "c")}, clock.now)
    changes = [
        {n: None if s is None else capture(f"http://{i}/", "a:b", "c") for n, s in publish.items()}
        for i, publish in enumerate(publishes)
    ]
    for change in changes[:before]:
        repository.publish(change, clock.move(2))
    clock.move(10)
    first = repository.state()
    client = Client(repository, clock, pages_records=size, pages_identifiers=size)
    later, found, sizes = iter(changes[before:]), [], []
    arguments = {"metadataPrefix": "oai_dc", **({"set": spec} if spec else {})}
    for page in client.pages(verb, **arguments):
        found.append(page.headers)
        sizes.append(page.token.get("completeListSize") if page.token is not None else None)
        change = next(later, None)
        if change is not None and page.next:
            repository.publish(change, clock.move(2))
            clock.move(3)
    every = [header for headers in found for header in headers]
    assert dict(every) == repository.state()
    assert len(set(every)) >= len(first)
    if before >= len(changes):
        assert len(every) == len(first)
    assert sizes[-1] in (None, str(len(every)))
