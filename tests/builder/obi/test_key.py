"""Keys: computed from a time and an id, read back from the store alone, alike everywhere."""

import json
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builder.obi import key
from builder.obi.run import claim
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreError
from tests.bucket import Bucket, fresh
from tests.builder.obi.conftest import Time
from tests.builder.obi.holding import GATHER, filled
from tests.builder.obi.logs import put

SHARED = Path(__file__).parents[3].parent / "shared" / "data" / "repec" / "vectors.json"
TISTS = st.integers(100_000_000, 99_999_999_999)
IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


@pytest.mark.parametrize(
    ("tist", "identifier", "expected"),
    [
        # The paper's own object: its page has 5231, which its rule does not give.
        (
            1352481230,
            "http://openlib.org/home/krichel",
            "032/184/2531/http%3A%2F%2Fopenlib.org%2Fhome%2Fkrichel",
        ),
        (
            1352481230,
            "http://openlib.org/home/krichel/",
            "032/184/2531/http%3A%2F%2Fopenlib.org%2Fhome%2Fkrichel%2F",
        ),
        (1700000001, "RePEc:xyz:papers:7", "100/000/0071/RePEc%3Axyz%3Apapers%3A7"),
        (123456789, "RePEc:xyz", "987/654/321/RePEc%3Axyz"),
        (12345678901, "RePEc:xyz", "109/876/54321/RePEc%3Axyz"),
        (1500000000, "RePEc:xyz:papers:ž", "000/000/0051/RePEc%3Axyz%3Apapers%3A%C5%BE"),
        (
            1500000000,
            "http://a.cz/~b/c%2Fd(e)*!'?f&g#h",
            "000/000/0051/http%3A%2F%2Fa.cz%2F~b%2Fc%252Fd%28e%29%2A%21%27%3Ff%26g%23h",
        ),
        (
            1500000000,
            "http://a.cz/" + "b" * 300,
            "000/000/0051/http%3A%2F%2Fa.cz%2F" + "b" * 140 + ";"
            "82e8e9eb6d5b9b181a6490c598127eac620d753a644b44428846e1bb9d34753f",
        ),
    ],
)
def test_keys(tist: int, identifier: str, expected: str) -> None:
    assert key.key(tist, identifier) == "obi/" + expected


def test_the_shared_keys() -> None:
    if not SHARED.is_file():
        pytest.skip(f"no keys to compare with: {SHARED} is not there")
    for vector in json.loads(SHARED.read_text("utf-8"))["obi_key"]:
        assert key.key(vector["tist"], vector["id"]) == "obi/" + vector["key"]


@pytest.mark.parametrize("tist", [-1, 0, 99_999_999, 100_000_000_000])
def test_a_time_that_no_run_can_have(tist: int) -> None:
    with pytest.raises(key.BadTist, match="of 9 to 11 digits"):
        key.key(tist, "x")


@given(TISTS, IDS)
@example(1_000_000_000, ";runs")
@example(918_000_000, "a;redirect")
@example(1_352_481_230, "%2F/")
@example(1_352_481_230, ".")
@example(1_352_481_230, "..")
def test_a_key_is_turned_back(tist: int, identifier: str) -> None:
    where = key.key(tist, identifier)
    assert key.tist_of(where) == tist
    assert max(map(len, where.split("/"))) <= key.LONGEST
    if len(quote(identifier, safe="")) <= key.LONGEST:
        assert key.parse(where) == (tist, identifier)
    else:
        assert key.parse(where) == (tist, None)
    assert not {".", ".."} & set(where.split("/"))  # no store takes such a name
    assert not where.endswith(key.REDIRECT)
    assert key.redirect(tist, identifier) == where + key.REDIRECT
    assert key.parse(key.redirect(tist, identifier)) is None
    assert len(key.redirect(tist, identifier).rpartition("/")[2]) <= 255


@given(TISTS, IDS, TISTS, IDS)
def test_no_two_have_one_key_and_none_lies_below_another(
    tist: int, identifier: str, other: int, another: str
) -> None:
    keys = {key.key(tist, identifier), key.key(other, another)}
    assert len(keys) == len({(tist, identifier), (other, another)})
    assert not any(a.startswith(b + "/") for a in keys for b in keys)


@given(TISTS)
def test_a_run_is_turned_back(tist: int) -> None:
    assert key.run_of(key.run(tist) + "open.json") == tist


@pytest.mark.parametrize(
    "where",
    [
        "obi/032/184/2531/a%2f",
        "obi/032/184/2531/a b",
        "obi/032/184/2531/%ff",
        "obi/032/184/2530/a",
        "obi/32/184/2531/a",
        "obi/032/184/2531/",
        "obi/032/184/2531/a/b",
        "obi/032/184/2531/..",
        "obi/032/184/2531/a;b",
        "obi/032/184/253x/a",
        "records/032/184/2531/a",
    ],
)
def test_what_is_no_key(where: str) -> None:
    assert key.parse(where) is None


def test_keys_are_the_same_everywhere(tmp_path: Path, moto_server: str, weed_server: str) -> None:
    found = []
    with closing(fresh(moto_server)) as moto, closing(fresh(weed_server)) as weed:
        for number, store in enumerate((FolderStore(tmp_path / "store"), moto, weed)):
            (tmp_path / str(number)).mkdir()
            filled(store, Time(), tmp_path / str(number))
            found.append({k: store.read(k) for k in store.keys("obi/")})
    assert found[0] == found[1] == found[2]


def test_a_key_that_s3_would_refuse_is_not_written(moto_server: str, time: Time) -> None:
    """moto takes keys of 1,025 bytes, as no server of AWS does."""
    with closing(fresh(moto_server)) as plain:
        prefix = "p" * 250 + "/" + "q" * 250 + "/" + "r" * 250 + "/" + "s" * 40
        with closing(Bucket(plain.endpoint, plain.bucket, prefix)) as deep:
            run = claim(deep, GATHER, time.runtime)
            with pytest.raises(StoreError, match=r"longer than the 1,024 bytes that S3 .* shorter"):
                put(run, "x" * 240, b"x")
            put(run, "x" * 100, b"x")
