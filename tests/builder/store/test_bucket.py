"""A bucket when things go wrong: each fault ends well, or in one line that says what is wrong."""

import io
import re
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from builder.store.s3 import PROOF
from functions.config import configuration
from functions.snapshot.errors import (
    Conflict,
    DamagedStore,
    MissingObject,
    StoreError,
    StoreUnavailable,
)
from functions.store import connection
from functions.store.connection import SILENCE
from functions.store.mirror import Mirror
from functions.store.slice import open_reader
from tests.bucket import ACCESS_KEY, SECRET_KEY, Bucket, administrator, fresh
from tests.functions.store.test_client import REFUSALS
from tests.patience import in_real_time
from tests.proxy import (
    Answer,
    Fault,
    First,
    Lost,
    Proxy,
    Seen,
    Slow,
    Trickle,
    Unconditional,
    Unquoted,
    always,
    for_seconds,
)

pytestmark = pytest.mark.shared(3)

Make = Callable[..., Bucket]
DATA = bytes(range(256)) * 8192


@pytest.fixture
def bucket(make_bucket: Make, proxy: Proxy) -> Iterator[Bucket]:
    """Give a bucket behind the proxy."""
    one = make_bucket().through(proxy.url)
    yield one
    one.close()


@in_real_time
def test_what_is_busy_for_ever_is_told(make_bucket: Make, proxy: Proxy) -> None:
    bucket = make_bucket().through(proxy.url, retry_seconds=0.3)
    proxy.fault = always(Answer(503, "SlowDown"))
    for request in (
        lambda: bucket.read("x"),
        lambda: bucket.put("x", io.BytesIO(b"")),
        lambda: bucket.create("x", b""),
        lambda: bucket.local("x"),
        lambda: list(bucket.keys("")),
        lambda: bucket.remove("x"),
    ):
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"503 SlowDown.*retried for 0\.3 s"):
            request()
        assert time.monotonic() - began < 9


def test_folders_that_a_console_made_are_no_objects(make_bucket: Make, moto_server: str) -> None:
    bucket = make_bucket()
    console = administrator(moto_server)
    for key in ("store/", "store/intake/", "store/intake/run/", "store/records/"):
        console.put_object(Bucket=bucket.bucket, Key=key, Body=b"")
    for prefix in ("", "intake/", "intake/run/", "records/"):
        assert list(bucket.keys(prefix)) == []
    console.put_object(Bucket=bucket.bucket, Key="store", Body=b"another's")
    bucket.put("intake/run/empty", io.BytesIO(b""))
    assert list(bucket.keys("")) == list(bucket.keys("intake/")) == ["intake/run/empty"]


@pytest.mark.parametrize("key", ["store//x", "store/records/../x", 'store/records/"\x01/./x'])
def test_a_key_that_is_not_ours_is_told(make_bucket: Make, moto_server: str, key: str) -> None:
    bucket = make_bucket()
    administrator(moto_server).put_object(Bucket=bucket.bucket, Key=key, Body=b"")
    with pytest.raises(
        StoreError, match=r"which is not a key of Sheaf; remove that object"
    ) as told:
        list(bucket.keys(""))
    assert repr(key) in str(told.value)
    assert str(told.value).isprintable()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("code", ["InternalError", "ServiceUnavailable", "SlowDown"])
def test_a_key_that_stayed_for_a_moment_is_removed_again(
    bucket: Bucket, proxy: Proxy, code: str
) -> None:
    for key in "xy":
        bucket.put(key, io.BytesIO(b"1"))
    answer = Answer(200, code, "Please try again.", keys=("store/x",))
    proxy.fault = First(answer, lambda seen: seen.method == "POST")
    bucket.remove("x", "y")
    assert len(proxy.took("POST")) == 2
    assert list(bucket.keys("")) == []


def test_a_key_that_may_not_be_removed_is_told(bucket: Bucket, proxy: Proxy) -> None:
    proxy.fault = always(Answer(200, "AccessDenied", "Access Denied", keys=("store/x",)))
    with pytest.raises(StoreError, match=r"permission denied: .* s3:DeleteObject") as caught:
        bucket.remove("x", "y")
    assert "\n" not in str(caught.value)
    assert len(proxy.took("POST")) == 1


@pytest.mark.parametrize(
    ("limits", "own"),
    [
        ({"retry_seconds": 0.2}, True),
        ({"most_seconds": 0.2}, False),
        ({"removal_seconds": 0.2}, False),
    ],
    ids=["configured", "serving", "removing"],
)
def test_a_limit_that_is_not_the_configuration_s_is_not_said_to_be(
    make_bucket: Make, proxy: Proxy, limits: dict[str, float], own: bool
) -> None:
    bucket = make_bucket().through(proxy.url, **limits)
    proxy.fault = always(Answer(503, "SlowDown"))
    with pytest.raises(StoreUnavailable, match=r"retried for 0\.2 s") as caught:
        bucket.remove("x")
    assert ("store.retry_seconds" in str(caught.value)) == own


@in_real_time
def test_tries_come_at_different_times(bucket: Bucket, proxy: Proxy) -> None:
    """Many clients that were refused at once must not all come back at once."""
    times: dict[int, list[float]] = {}

    def refuse(seen: Seen) -> Fault:
        times.setdefault(int(seen.key[-1]), []).append(time.monotonic())
        return Answer(503)

    proxy.fault = refuse
    hasty = bucket.through(proxy.url, retry_seconds=1)

    def read(number: int) -> None:
        with pytest.raises(StoreError):
            hasty.read(f"k{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(4)))
    second = sorted(found[1] - found[0] for found in times.values())
    assert len(second) == 4
    assert second[-1] - second[0] > 0.001
    assert all(3 <= len(found) <= 12 for found in times.values())


@pytest.mark.parametrize("tag", [None, "right"])
def test_a_conditional_write_whose_answer_was_lost_is_known_for_ours(
    bucket: Bucket, proxy: Proxy, tag: str | None
) -> None:
    if tag is not None:
        tag = bucket.replace("x", b"0", None)
    proxy.fault = First(Lost(), lambda seen: seen.method == "PUT" and seen.key.endswith("/x"))
    new = bucket.replace("x", b"1", tag)
    assert new == bucket.tag("x")
    assert bucket.read("x") == b"1"
    assert len([s for s in proxy.took("PUT") if s.key.endswith("/x")]) == (2 if tag is None else 3)


def test_a_conditional_write_that_was_lost_and_overtaken_is_a_conflict(
    bucket: Bucket, proxy: Proxy, moto_server: str
) -> None:
    rival = bucket.through(moto_server)
    tag = bucket.replace("x", b"0", None)

    def overtake(seen: Seen) -> Fault | None:
        if seen.method == "PUT" and seen.key.endswith("/x") and not overtaken:
            overtaken.append(seen)
            proxy.fault = lambda later: None
            rival.replace("x", b"rival", tag)
            return Answer(500, "InternalError")
        return None

    overtaken: list[Seen] = []
    proxy.fault = overtake
    with pytest.raises(Conflict):
        bucket.replace("x", b"1", tag)
    assert bucket.read("x") == b"rival"


@in_real_time
def test_an_answer_that_does_not_come_is_asked_for_again(make_bucket: Make, proxy: Proxy) -> None:
    bucket = make_bucket().through(proxy.url, timeout=0.5)
    bucket.put("x", io.BytesIO(b"1"))
    proxy.fault = First(Slow(2), lambda seen: seen.method == "GET")
    assert bucket.read("x") == b"1"
    proxy.fault = always(Slow(2))
    impatient = bucket.through(proxy.url, timeout=0.3, retry_seconds=0)
    with pytest.raises(StoreUnavailable, match="did not answer in time"):
        impatient.read("x")


@in_real_time
def test_a_slow_line_is_no_fault_as_long_as_something_comes(
    make_bucket: Make, proxy: Proxy
) -> None:
    """Each piece takes longer than a request may be silent."""
    bucket = make_bucket().through(proxy.url, timeout=1.5, part=1 << 20, retry_seconds=0)
    bucket.through(bucket.endpoint, timeout=30).put("x", io.BytesIO(DATA))
    proxy.fault = always(Trickle(2))
    assert bucket.local("x").read_bytes() == DATA


def test_a_body_that_stalls_is_given_up(make_bucket: Make, proxy: Proxy) -> None:
    bucket = make_bucket().through(proxy.url, timeout=0.3, retry_seconds=0)
    bucket.through(bucket.endpoint, timeout=30).put("x", io.BytesIO(DATA))
    proxy.fault = always(Trickle(8))
    for request in (lambda: bucket.read("x"), lambda: bucket.local("x")):
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            request()


@in_real_time
def test_once_a_piece_fails_nobody_waits_for_the_others(make_bucket: Make, proxy: Proxy) -> None:
    """Nor does Ctrl-C, which ends them in the same way."""
    bucket = make_bucket().through(proxy.url, part=1 << 20)
    bucket.through(proxy.url, part=8 << 20).put("x", io.BytesIO(DATA * 2))
    proxy.fault = lambda seen: {
        f"bytes={1 << 20}-{(2 << 20) - 1}": Answer(403, "AccessDenied"),
        f"bytes={2 << 20}-{(3 << 20) - 1}": Trickle(20),
    }.get(str(seen.range))
    began = time.monotonic()
    with pytest.raises(StoreError, match="permission denied"):
        bucket.local("x")
    assert time.monotonic() - began < 15


@in_real_time
def test_who_serves_waits_neither_for_silence_nor_for_what_trickles(
    make_bucket: Make, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SILENCE <= 5
    monkeypatch.setattr("functions.store.connection.SILENCE", 0.8)
    monkeypatch.setattr("functions.store.connection.LONGEST", 2.0)
    bucket = make_bucket()
    bucket.create("x", DATA)
    settings = configuration.parse(
        "", {"SHEAF_STORE_ENDPOINT": proxy.url, "SHEAF_STORE_RETRY_SECONDS": "0"}
    )
    with closing(open_reader(bucket.uri, Path(), settings, bucket.environment)) as reader:
        for fault in (Slow(20), Trickle(4)):
            proxy.fault = always(fault)
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                reader.read("x")
            assert time.monotonic() - began < 15
        proxy.fault = always(Trickle(0.5))
        assert reader.read("x") == DATA


def test_a_listing_that_does_not_come_is_given_up(make_bucket: Make, proxy: Proxy) -> None:
    bucket = make_bucket().through(proxy.url, timeout=0.3, retry_seconds=0.2)
    proxy.fault = always(Slow(2))
    with pytest.raises(StoreUnavailable, match="did not answer in time"):
        list(bucket.keys(""))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(403, "AccessDenied"), "permission denied: these credentials need s3:"),
        (Answer(400, "EntityTooLarge"), "the object is larger"),
        *REFUSALS,
    ],
    ids=lambda value: value.code or str(value.status) if isinstance(value, Answer) else "",
)
def test_a_refusal_is_told_at_once_and_in_one_line(
    bucket: Bucket, proxy: Proxy, tmp_path: Path, answer: Answer, said: str
) -> None:
    (path := tmp_path / "large").write_bytes(DATA)
    proxy.fault = always(answer)
    bucket = bucket.through(proxy.url, retry_seconds=1)
    for request in (
        lambda: bucket.read("x"),
        lambda: bucket.put("x", io.BytesIO(b"")),
        lambda: bucket.create("x", b""),
        lambda: bucket.replace("x", b"", None),
        lambda: bucket.tag("x"),
        lambda: bucket.local("x"),
        lambda: list(bucket.keys("")),
        lambda: bucket.remove("x"),
        lambda: bucket.put("x", io.BytesIO(DATA * 8)),
        lambda: bucket.create_file("x", path),
    ):
        proxy.seen.clear()
        with pytest.raises(StoreError) as caught:
            request()
        text = str(caught.value)
        if "does not honour" not in text or answer.code != "NotImplemented":
            assert said in text, text
        assert "\n" not in text
        assert SECRET_KEY not in text
        assert ACCESS_KEY not in text
        assert len(proxy.seen) <= 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("method", "action"),
    [("GET", "s3:GetObject"), ("PUT", "s3:PutObject"), ("POST", "s3:DeleteObject")],
)
def test_a_missing_permission_names_the_action(
    bucket: Bucket, proxy: Proxy, method: str, action: str
) -> None:
    proxy.fault = lambda seen: Answer(403, "AccessDenied") if seen.method == method else None
    request = {
        "GET": lambda: bucket.read("x"),
        "PUT": lambda: bucket.put("x", io.BytesIO(b"")),
        "POST": lambda: bucket.remove("x"),
    }[method]
    with pytest.raises(StoreError, match=action):
        request()
    if method == "GET":
        with pytest.raises(StoreError, match="s3:ListBucket"):
            list(bucket.keys(""))


def test_wrong_credentials_are_told(weed_server: str) -> None:
    bucket = fresh(weed_server)
    for changes, said in (
        ({"AWS_SECRET_ACCESS_KEY": "wrong-and-secret"}, "the secret access key is wrong"),
        ({"AWS_ACCESS_KEY_ID": "nobody-known"}, "does not know the access key"),
    ):
        other = Bucket(weed_server, bucket.bucket, credentials={**bucket.environment, **changes})
        with pytest.raises(StoreError, match=said) as caught:
            other.read("x")
        assert "wrong-and-secret" not in str(caught.value)
        assert "nobody-known" not in str(caught.value)


def test_a_server_that_ignores_conditions_is_refused_before_the_first_write(
    bucket: Bucket, proxy: Proxy, tmp_path: Path
) -> None:
    (path := tmp_path / "file").write_bytes(b"1")
    for _ in range(2):  # also where the object of the proof is there already
        proxy.fault = always(Unconditional())
        for write in (
            lambda: bucket.create("x", b"1"),
            lambda: bucket.create_file("x", path),
            lambda: list(bucket.create_all([("x", b"1")])),
            lambda: bucket.replace("x", b"1", None),
        ):
            with pytest.raises(StoreError, match=r"not honour If-None-Match"):
                write()
        proxy.fault = lambda seen: None
        assert bucket.tag("x") is None


def test_a_server_that_honours_half_of_the_conditions_is_refused(
    bucket: Bucket, proxy: Proxy
) -> None:
    proxy.fault = lambda seen: Unconditional() if seen.number == 2 else None
    with pytest.raises(StoreError, match=r"not honour If-Match"):
        bucket.replace("x", b"1", None)


def test_a_server_that_knows_tags_without_quotes_only_gets_them_so(
    bucket: Bucket, proxy: Proxy
) -> None:
    proxy.fault = always(Unquoted())
    old = bucket.replace("x", b"0", None)
    new = bucket.replace("x", b"1", old)
    assert bucket.read("x") == b"1"
    for one in (
        bucket,
        bucket.through(proxy.url),
    ):  # one that knows the server, and one that does not
        with pytest.raises(Conflict):
            one.replace("x", b"2", old)
    proxy.seen.clear()
    assert bucket.replace("x", b"3", new) == bucket.tag("x")
    assert bucket.read("x") == b"3"
    assert len(proxy.took("PUT")) == 1


def test_an_honest_server_that_is_busy_is_not_refused(bucket: Bucket, proxy: Proxy) -> None:
    """A write of the proof that was made again must not be taken for one that went through."""
    proxy.fault = lambda seen: Answer(503) if seen.number % 2 == 0 else None
    for number in range(3):
        bucket.through(proxy.url).create(f"x{number}", b"")


def test_the_proof_costs_two_requests_once(bucket: Bucket, proxy: Proxy) -> None:
    bucket.create("x", b"")
    again = bucket.through(proxy.url)
    proxy.seen.clear()
    again.create("y", b"")
    again.create("z", b"")
    assert [s.key.rpartition("/")[2] for s in proxy.seen] == [PROOF, PROOF, "y", "z"]


def test_an_object_that_is_there_is_not_sent_again(bucket: Bucket, proxy: Proxy) -> None:
    bucket.put("x", io.BytesIO(DATA))
    proxy.seen.clear()
    bucket.put("x", io.BytesIO(DATA))
    assert [s.method for s in proxy.seen] == ["GET"]


def test_an_upload_in_parts_that_fails_shows_nothing(make_bucket: Make, proxy: Proxy) -> None:
    bucket = make_bucket().through(proxy.url, part=5 << 20, retry_seconds=1)
    proxy.fault = lambda seen: Answer(403, "AccessDenied") if "partNumber=2" in seen.path else None
    with pytest.raises(StoreError, match="s3:PutObject"):
        bucket.put("large", io.BytesIO(DATA * 6))
    proxy.fault = lambda seen: None
    assert bucket.tag("large") is None
    proxy.fault = for_seconds(0.5, Answer(503))
    bucket.put("large", io.BytesIO(DATA * 6))
    assert bucket.read("large") == DATA * 6


def test_only_the_spans_that_are_wanted_are_fetched(bucket: Bucket, proxy: Proxy) -> None:
    bucket.put("x", io.BytesIO(DATA * 4))  # 8 MB
    footer = (len(DATA) * 4 - 1000, 1000)
    proxy.seen.clear()
    bucket.local("x", [(3_000_000, 200_000), footer])
    assert len(proxy.seen) == 2
    bucket.local("x", [(3_100_000, 50_000), footer])
    assert len(proxy.seen) == 2
    bucket.local("x", [(5_000_000, 200_000), footer])
    assert proxy.seen[2].range == "bytes=5000000-5199999"
    assert len(proxy.seen) == 3


def test_of_a_known_size_nothing_more_is_fetched_and_neighbours_are_one_request(
    bucket: Bucket, proxy: Proxy
) -> None:
    data = DATA * 4  # 8 MB
    bucket.put("x", io.BytesIO(data))
    proxy.seen.clear()
    spans = [(3_000_000, 200_000), (3_200_004, 100_000)]
    path = bucket.local("x", spans, len(data))
    assert [seen.range for seen in proxy.seen] == ["bytes=3000000-3300003"]
    for start, length in spans:
        assert path.read_bytes()[start : start + length] == data[start : start + length]
    assert bucket.local("x", spans[1:], len(data)) == path
    assert len(proxy.seen) == 1
    bucket.local("x", [(0, 50_000)], len(data))  # of a large file not a byte more
    assert [seen.range for seen in proxy.seen[1:]] == ["bytes=0-49999"]
    bucket.remove("x")
    assert not path.exists()


def test_a_small_object_comes_whole_whichever_part_is_asked_for(
    bucket: Bucket, proxy: Proxy
) -> None:
    data = DATA[: 1 << 15]
    bucket.put("x", io.BytesIO(data))
    proxy.seen.clear()
    for span in ((7, 9), (99, 1000)):
        assert bucket.local("x", [span], len(data)).read_bytes() == data
    assert len(proxy.seen) == 1


def test_an_object_that_does_not_fit_leaves_nothing_on_the_disk(bucket: Bucket) -> None:
    bucket.create("x", DATA * 2)  # 4 MB
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, before[1]))  # as a disk with as much room
    try:
        with pytest.raises(StoreError, match="cannot be written: File too large"):
            bucket.local("x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    whole = bucket.local("x")
    assert whole.read_bytes() == DATA * 2
    assert [*whole.parent.glob("*x*")] == [whole]


def test_a_file_that_was_sent_is_not_fetched(bucket: Bucket, proxy: Proxy, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(DATA * 5)
    with path.open("rb") as source:
        bucket.put("x", source)
    path.unlink()
    proxy.seen.clear()
    assert bucket.local("x").read_bytes() == DATA * 5
    assert bucket.local("x", [(100, 5)]).stat().st_size == len(DATA) * 5
    assert proxy.seen == []
    path.write_bytes(b"another")
    with path.open("rb") as source:
        bucket.put("x", source)  # it is there already
    assert bucket.local("x").read_bytes() == DATA * 5
    bucket.remove("x")
    with pytest.raises(MissingObject):
        bucket.local("x")


def test_many_threads_fetch_the_same_bytes_once(bucket: Bucket, proxy: Proxy) -> None:
    bucket.put("x", io.BytesIO(DATA * 4))
    proxy.seen.clear()
    proxy.fault = always(Slow(0.1))
    found: list[bytes] = []

    def read(number: int) -> None:
        with bucket.local("x", [(2_000_000 * (number % 2), 500_000)]).open("rb") as file:
            file.seek(2_000_000 * (number % 2))
            found.append(file.read(500_000))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(read, range(8)))
    assert set(found) == {(DATA * 4)[:500_000], (DATA * 4)[2_000_000:2_500_000]}
    assert len(found) == 8
    assert len(proxy.seen) == 2


def test_the_cache_lets_go_of_what_was_used_longest_ago(bucket: Bucket) -> None:
    now = [0.0]
    mirror = Mirror(bucket._client, 5 << 20, lambda: now[0])
    for name in "abc":
        bucket.put(name, io.BytesIO(DATA))
    paths = {}
    for name in "abca":
        now[0] += 100
        paths[name] = mirror.local(f"store/{name}", None)
        assert paths[name].read_bytes() == DATA
    assert paths["a"].exists()
    assert paths["c"].exists()
    assert not paths["b"].exists()
    mirror.close()
    assert not paths["a"].exists()


def test_what_was_just_handed_out_stays_beyond_the_limit(bucket: Bucket) -> None:
    now = [0.0]
    mirror = Mirror(bucket._client, 0, lambda: now[0], grace=5.0)
    paths = {}
    for name, now[0] in (("a", 100.0), ("b", 104.0), ("c", 106.0)):
        bucket.put(name, io.BytesIO(DATA))
        paths[name] = mirror.local(f"store/{name}", None)
        assert paths[name].read_bytes() == DATA
        assert paths["a"].exists() == (name != "c")
    assert paths["b"].exists()
    mirror.close()


def test_an_object_that_shrank_or_changed_is_damage(bucket: Bucket, moto_server: str) -> None:
    bucket.put("x", io.BytesIO(DATA))
    for size in (len(DATA) * 2, None):
        with pytest.raises(DamagedStore, match="store/x is damaged"):
            bucket.local("x", [(len(DATA) - 10, 20)], size)
    bucket.put("large", io.BytesIO(DATA * 4))
    bucket.local("large", [(0, 10)])
    other = bucket.through(moto_server)
    other.remove("large")
    other.put("large", io.BytesIO(DATA * 3 + DATA[::-1]))
    with pytest.raises(StoreError, match="was replaced while it was being read"):
        bucket.local("large", [(5_000_000, 10)])
    assert bucket.local("large").read_bytes() == DATA * 3 + DATA[::-1]


def test_many_at_once_stop_at_the_first_refusal(bucket: Bucket, proxy: Proxy) -> None:
    """And what was to be written behind it is not asked for to the end."""
    proxy.fault = lambda seen: Answer(403, "AccessDenied") if "-50" in seen.path else None
    count = 0

    def objects() -> Iterator[tuple[str, bytes]]:
        nonlocal count
        for number in range(10_000):
            count += 1
            yield f"x-{number}", b"x"

    with pytest.raises(StoreError, match="permission denied"):
        list(bucket.create_all(objects()))
    assert count < 300


@in_real_time
def test_retries_are_announced_now_and_then(
    make_bucket: Make,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(connection, "_ANNOUNCED", 0.1)
    bucket = make_bucket().through(proxy.url, retry_seconds=2)
    proxy.fault = for_seconds(1.5, Answer(503, "SlowDown"))
    bucket.put("x", io.BytesIO(DATA))
    (text,) = caplog.messages
    assert re.fullmatch(
        r"s3://[\w-]+: the server is busy or failing \(503 SlowDown\); "
        r"trying again for up to [12] s",
        text,
    )
