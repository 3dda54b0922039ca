"""Many requests in one run, with faults at random: each ends in exactly one result."""

import hashlib
import json
import random
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from builder.filesets.status import FILE, STATUSES
from builder.filesets.strategies.s3 import ObjectStrategy
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreError
from tests.builder.filesets.command import Command
from tests.builder.filesets.deposits import ZENODO, deposit, page, record
from tests.builder.filesets.server import (
    Answer,
    bot_wall,
    html,
    json_of,
    login,
    served,
    status,
    text,
    then,
)
from tests.extent import ALL

MANY = 1000 if ALL else 250
PART = "success-partial"
HIT = {name for name, row in STATUSES.items() if row.hit}


@dataclass
class Dice:
    """What is asked for, and what may come of it; the same seed gives the same."""

    command: Command
    seed: int
    expected: dict[str, set[str]] = field(default_factory=dict)
    bodies: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def files(self, id_: int) -> dict[str, bytes]:
        many = self.random.choice([1, 1, 1, 2, 3])
        return {
            f"{n}/{id_}.csv": self.random.randbytes(self.random.randint(1, 3000))
            for n in range(many)
        }

    def add(self, id_: int) -> str:
        """Make up a deposit with a fault or without one, and return its URL."""
        kind = self.random.choice(list(KINDS))
        files = self.files(id_)
        url = KINDS[kind](self, id_, files)
        self.bodies[url] = files
        return url

    def deposit(
        self,
        id_: int,
        files: Mapping[str, bytes],
        *may: str,
        first: Answer | None = None,
        **more: Any,
    ) -> str:
        """Have a deposit whose first file is answered so."""
        answers = {next(iter(files)): first} if first else {}
        url = deposit(self.command.server, id_, files, answers=answers, **more)
        self.expected[url] = set(may) or ({"success-file"} if len(files) == 1 else {"success"})
        return url

    def answered(self, id_: int, answer: Answer, *may: str) -> str:
        """Have the API answer so for a deposit."""
        self.command.server.add(f"{ZENODO}/api/records/{id_}", answer)
        self.expected[page(id_)] = set(may)
        return page(id_)


def _body(files: Mapping[str, bytes]) -> bytes:
    return next(iter(files.values()))


Kind = Callable[[Dice, int, dict[str, bytes]], str]
KINDS: Mapping[str, Kind] = {
    "clean": lambda d, i, f: d.deposit(i, f),
    "clean too": lambda d, i, f: d.deposit(i, f),
    "cut once": lambda d, i, f: d.deposit(
        i, f, first=then(served(_body(f), cut=len(_body(f)) * 6 // 10), served(_body(f)))
    ),
    "wrong once": lambda d, i, f: d.deposit(
        i, f, first=then(served(_body(f), wrong=len(_body(f)) // 2), served(_body(f)))
    ),
    "wrong": lambda d, i, f: d.deposit(
        i, f, PART, "mismatch-md5", first=served(_body(f), wrong=len(_body(f)) // 2)
    ),
    "short": lambda d, i, f: d.deposit(
        i, f, PART, "mismatch-size", "truncated", first=served(_body(f)[:-1])
    ),
    "busy once": lambda d, i, f: d.deposit(i, f, first=then(status(503), served(_body(f)))),
    "asked to wait": lambda d, i, f: d.deposit(
        i, f, first=then(status(429, Retry_After="0"), served(_body(f)))
    ),
    "file gone": lambda d, i, f: d.deposit(i, f, PART, "file-404", first=status(404)),
    "file forbidden": lambda d, i, f: d.deposit(i, f, PART, "file-forbidden", first=status(403)),
    "decoy": lambda d, i, f: d.deposit(
        i, f, PART, "html-decoy", first=html("<html>Sign in</html>")
    ),
    "gzip": lambda d, i, f: d.deposit(i, f, first=served(_body(f), coding="gzip")),
    "no ranges": lambda d, i, f: d.deposit(
        i, f, first=then(served(_body(f), cut=len(_body(f)) // 2), served(_body(f), ranges=False))
    ),
    "restricted": lambda d, i, f: d.deposit(i, f, "platform-restricted", access_right="restricted"),
    "embargoed": lambda d, i, f: d.deposit(
        i, f, "platform-embargoed", access_right="embargoed", embargo_date="2999-01-01"
    ),
    "unsafe": lambda d, i, f: d.deposit(i, {"../a.csv": b"a"}, "unsafe-path"),
    "empty": lambda d, i, f: d.answered(i, json_of(record(i, {})), "empty-manifest"),
    "gone": lambda d, i, f: d.answered(i, status(410), "platform-gone"),
    "unknown": lambda d, i, f: d.answered(i, status(404), "platform-404"),
    "no JSON": lambda d, i, f: d.answered(
        i, text("{", "application/json"), "platform-bad-response"
    ),
    "odd JSON": lambda d, i, f: d.answered(
        i, json_of({"id": i, "metadata": [], "files": 3}), "platform-bad-response"
    ),
    "login": lambda d, i, f: d.answered(i, login(), "platform-login-wall"),
    "bot wall": lambda d, i, f: d.answered(i, bot_wall(), "platform-bot-wall"),
    "down": lambda d, i, f: d.answered(i, status(500), "platform-http-error"),
}


@contextmanager
def failing_store(rate: float) -> Iterator[Counter[str]]:
    """Have the store refuse some of what is written, by its key, and a strategy have a fault."""
    told: Counter[str] = Counter()
    lock = threading.Lock()
    seen: set[str] = set()

    def refuses(key: str) -> bool:
        """Tell whether a key is refused, which is the first time alone."""
        with lock:
            chosen = zlib.crc32(key.encode()) % 1000 < rate * 1000 and key not in seen
            seen.add(key)
            told["refused"] += chosen
        return chosen

    def wrapped(name: str) -> Any:
        made = getattr(FolderStore, name)

        def call(self: FolderStore, key: str, *more: Any) -> Any:
            if key.startswith(("filesets/", "warcs/")) and refuses(key):
                raise StoreError(f"{key} cannot be written: no such luck")
            return made(self, key, *more)

        return call

    def faulty(self: ObjectStrategy, item: Any) -> Any:
        if int(item.version) % (97 * MANY // 1000) == 0:
            told["faulty"] += 1
            raise ZeroDivisionError("a fault of ours")
        return check(self, item)

    check = ObjectStrategy.check_existing
    with pytest.MonkeyPatch.context() as patch:
        for name in ("create", "create_file", "creating"):
            patch.setattr(FolderStore, name, wrapped(name))
        patch.setattr(ObjectStrategy, "check_existing", faulty)
        yield told


def kept(store: FolderStore, row: Mapping[str, Any]) -> bytes:
    """Return the bytes that the table says are a file's."""
    data = store.read(row["key"])
    if row["place"] is None:
        return data
    if row["key"].startswith("warcs/"):
        whole = zlib.decompressobj(31).decompress(data[row["place"] :])
        return whole.split(b"\r\n\r\n", 2)[2].removesuffix(b"\r\n\r\n")
    return data[row["place"] : row["place"] + row["bytes"]]


@pytest.mark.thorough
def test_requests_with_faults_end_in_one_result_each(command: Command) -> None:
    dice = Dice(command, seed=20261122)
    command.configure(
        http__tries="2",
        http__host_concurrent="16",
        http__concurrent="16",
        fileset__strategy="{ bytes = 4000 }",
    )
    urls = [dice.add(10 * number) for number in range(1, MANY * 19 // 20 + 1)]
    urls += dice.random.choices(urls, k=MANY - len(urls) - 10)
    bad = [f"no URL, number {number}" for number in range(10)]
    dice.expected |= {text: {"bad-identifier"} for text in bad}
    asked = [json.dumps({"base_url": url}) for url in (*urls, *bad)]
    dice.random.shuffle(asked)
    assert len(asked) == MANY
    with failing_store(20 / MANY) as told:
        results = command.results(lines="\n".join(asked))
    _check_results(dice, asked, results, told)
    command("publish")
    _check_listed(dice, results)
    command("verify")


def _check_results(
    dice: Dice, asked: list[str], results: list[dict[str, Any]], told: Mapping[str, int]
) -> None:
    first = [r for r in results if r["request"].get("ingest_type") == "dataset"]
    wanted = Counter(json.loads(line)["base_url"] for line in asked)
    assert Counter(r["request"]["base_url"] for r in first) == wanted
    assert told["refused"] > MANY // 200
    assert told["faulty"] > 0
    for found in first:
        name, url = found["status"], found["request"]["base_url"]
        assert STATUSES[name].scope != FILE
        of_store = name in {"error-store-upload", "internal-error"}
        again = name == "success-existing" and dice.expected[url] & HIT
        assert name in dice.expected[url] or again or of_store, found
    seconds = [r for r in results if r["request"].get("ingest_type") == "dataset-file"]
    assert len(seconds) == sum(r["status"] == "success-file" for r in first)
    assert len({r["status"] for r in first}) >= 15


def _check_listed(dice: Dice, results: list[dict[str, Any]]) -> None:
    """See that all that is listed is stored, is what the platform has, and that nothing else is."""
    command = dice.command
    out, _ = command(
        "query",
        "--json",
        "SELECT f.*, r.base_url FROM files f JOIN ingest_fileset_platform r USING (identifier)",
    )
    rows = [json.loads(line) for line in out.splitlines()]
    hit = {r["request"]["base_url"] for r in results if r["status"] in HIT and "manifest" in r}
    assert {row["base_url"] for row in rows} == hit
    left = {r["request"]["base_url"] for r in results if r["status"] == PART}
    assert len(rows) == sum(len(dice.bodies[url]) - (url in left) for url in hit)
    store = command.store
    for row in rows:
        body = kept(store, row)
        assert body == dice.bodies[row["base_url"]][row["path"]], row
        assert hashlib.sha256(body).hexdigest() == row["sha256"]
        assert row["status"] == "verified"
    out, _ = command("query", "SELECT count(*) FROM ingest_fileset_platform")
    assert int(out.splitlines()[1]) == len(dice.expected)
