"""The function of AWS Lambda over a bucket: its beginnings, its deadlines, and what comes after."""

import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from functions.http import origin
from functions.http.lambda_instance import MARGIN, Instance, Shares
from functions.site import assembly
from functions.snapshot import layout
from functions.store import engine
from tests.bucket import Bucket, fresh
from tests.e2e.test_s3 import PAGES, Bucketed
from tests.functions.oai.client import content
from tests.functions.oai.gateways import KINDS, http, received, rest
from tests.patience import in_real_time
from tests.proxy import Answer, Lost, Proxy, Slow, Trickle, always, proxied
from tests.test_architecture import DEPLOYED

pytestmark = pytest.mark.shared(2)

Make = Callable[[Bucket], "Lambda"]
ROOT = Path(__file__).parents[2]
LIST = "verb=ListRecords&metadataPrefix=oai_dc"
IDENTIFY = http("verb=Identify")


@dataclass
class Context:
    """What Lambda hands over besides the event."""

    seconds: float = 28.0
    aws_request_id: str = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"

    def get_remaining_time_in_millis(self) -> int:
        return round(self.seconds * 1000)


@dataclass
class Lambda:
    """An execution environment whose store is a bucket behind a proxy."""

    root: Path
    bucket: Bucket
    proxy: Proxy
    environment: dict[str, str]
    scratch: Path
    patch: pytest.MonkeyPatch
    lines: list[str] = field(default_factory=list)
    made: list[Instance] = field(default_factory=list)

    def begin(self) -> Instance:
        self.patch.setattr(tempfile, "tempdir", str(self.scratch))
        self.made.append(
            Instance(self.environment, self.root, self.lines.append, assembly.of_lambda)
        )
        return self.made[-1]

    def held(self) -> list[str]:
        """Return the folders that there are for parts of the bucket."""
        return sorted(path.name for path in self.scratch.glob("sheaf-cache-*"))

    def close(self) -> None:
        for instance in self.made:
            instance._opened.close()


@pytest.fixture
def frozen() -> Iterator[None]:
    """Have Python look for cycles as it did before."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.fixture(scope="module")
def store(moto_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    """Give a bucket with a snapshot; nothing is written to it."""
    bucket = fresh(moto_server)
    publish(bucket, tmp_path_factory.mktemp("published"))
    yield bucket
    bucket.close()


def publish(bucket: Bucket, folder: Path) -> None:
    Bucketed(folder / "home", bucket).publish_pages(folder / "one.warc.gz", PAGES)


@pytest.fixture
def begun(tmp_path: Path, frozen: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Give what makes an execution environment over a bucket."""
    root, scratch, made = tmp_path / "task", tmp_path / "scratch", []
    root.mkdir()
    scratch.mkdir()
    with ExitStack() as stack:

        def make(bucket: Bucket) -> Lambda:
            proxy = stack.enter_context(proxied(bucket.endpoint))
            environment = {
                **bucket.environment,
                "HOME": "/nowhere",
                "SHEAF_STORE_URI": bucket.uri,
                "SHEAF_STORE_ENDPOINT": proxy.url,
                "SHEAF_REPOSITORY_NAMESPACE": "b.cz",
                "SHEAF_PAGES_RECORDS": "10",
                "SHEAF_SERVE_POINTER_SECONDS": "0",
                "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
            }
            made.append(Lambda(root, bucket, proxy, environment, scratch, monkeypatch))
            return made[-1]

        yield make
        for one in made:
            one.close()


@pytest.fixture
def function(begun: Make, make_bucket: Callable[..., Bucket]) -> Lambda:
    return begun(make_bucket())


@pytest.fixture
def published(begun: Make, store: Bucket) -> Lambda:
    return begun(store)


@pytest.mark.parametrize("path", ["/oai", "/", "/content/x"])
def test_where_a_secret_is_asked_for_only_who_has_it_is_answered(
    path: str, published: Lambda
) -> None:
    """For every path, before the store is looked at; and the log does not tell the secret."""
    published.environment[origin.VARIABLE] = "of-the-proxy"
    function = published.begin()
    asked = http("verb=Identify", path=path)
    refused = received(function(asked, Context()))
    assert (refused["statusCode"], refused["headers"]["Cache-Control"]) == (403, "no-store")
    assert b"public base URL" in content(refused)
    assert json.loads(published.lines[-1])["status"] == 403
    asked["headers"][origin.HEADER] = "of-the-proxy"
    assert function(asked, Context())["statusCode"] == (404 if "content" in path else 200)
    assert "of-the-proxy" not in "".join(published.lines)


def threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def ended(name: str, seconds: float) -> bool:
    """Wait until no thread of that name is left."""
    end = time.monotonic() + seconds
    while threads(name) and time.monotonic() < end:
        time.sleep(0.05)
    return not threads(name)


def in_time(instance: Instance, event: Any, context: Context) -> dict[str, Any]:
    """Return the answer, which Lambda does not have to wait too long for."""
    began = time.monotonic()
    answer = received(instance(event, context))
    assert time.monotonic() - began < context.seconds - MARGIN / 4
    json.dumps(answer)
    return answer


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_it_answers_for_what_is_published(published: Lambda, kind: Any) -> None:
    instance = published.begin()
    answer = in_time(instance, kind(LIST, headers={"accept-encoding": "gzip"}), Context())
    assert answer["statusCode"] == 200
    assert content(answer).count(b"<record>") == 10
    assert not threads("sheaf-ahead")
    assert ended("sheaf-answer", 10)
    (line,) = published.lines
    entry = json.loads(line)
    assert entry["request"] == Context().aws_request_id
    assert (entry["status"], entry["rows"], entry["verb"]) == (200, 10, "ListRecords")


def test_what_every_request_needs_is_read_before_the_first(published: Lambda) -> None:
    instance = published.begin()
    keys = [one.key.rpartition("/")[2] for one in published.proxy.seen]
    # The pointer and the witness are read at the same time; the witness has the manifest.
    assert sorted(keys) == [layout.POINTER, layout.WITNESS.rpartition("/")[2]]
    published.proxy.seen.clear()
    assert instance(IDENTIFY)["statusCode"] == 200
    assert [one.key.rpartition("/")[2] for one in published.proxy.seen] in ([], [layout.POINTER])
    published.proxy.seen.clear()
    assert instance(http(LIST))["statusCode"] == 200
    assert instance(http(LIST))["statusCode"] == 200
    assert not [one for one in published.proxy.seen if one.key.endswith("manifest.json")]


def test_a_store_with_nothing_in_it_is_looked_at_again(
    function: Lambda, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    instance = function.begin()
    assert "read-ahead failed: nothing is published" in caplog.text
    answer = received(instance(IDENTIFY, Context()))
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "30")
    publish(function.bucket, tmp_path)
    assert instance(IDENTIFY, Context())["statusCode"] == 200


@in_real_time
@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", [Answer(503, "SlowDown"), Answer(403, "AccessDenied"), Slow(60)])
def test_a_store_out_of_reach_at_the_beginning_may_come_back(
    published: Lambda, fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    published.proxy.fault = always(fault)
    began = time.monotonic()
    instance = published.begin()
    assert time.monotonic() - began < 8  # Lambda gives ten
    assert caplog.text.count("read-ahead ") == 1
    answer = in_time(instance, IDENTIFY, Context(6))
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "30")
    assert b"SlowDown" not in content(answer)
    assert published.bucket.bucket.encode() not in content(answer)
    published.proxy.fault = lambda seen: None
    assert in_time(instance, IDENTIFY, Context())["statusCode"] == 200


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SHEAF_PAGES_RECORDS", "many", 'pages.records (SHEAF_PAGES_RECORDS) is "many", expected'),
        ("SHEAF_NO_SUCH_KEY", "1", "unknown key SHEAF_NO_SUCH_KEY"),
        ("SHEAF_STORE_URI", "", "expected a folder or s3://bucket/prefix"),
        ("SHEAF_STORE_URI", "gopher://x", "expected a folder or s3://bucket/prefix"),
        ("SHEAF_STORE_ENDPOINT", "http://me:hidden@x", "store.endpoint (SHEAF_STORE_ENDPOINT)"),
        ("SHEAF_FORMATS_OFFERED", '["marc"]', "marc"),
        ("AWS_SECRET_ACCESS_KEY", "hid den", "AWS_SECRET_ACCESS_KEY has a space"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "much", "invalid literal"),
    ],
)
def test_a_configuration_that_is_faulty_is_told_in_the_log_alone(
    published: Lambda, caplog: pytest.LogCaptureFixture, name: str, value: str, said: str
) -> None:
    right = published.environment.get(name)
    published.environment[name] = value
    instance = published.begin()
    assert said in caplog.text
    assert "hidden" not in caplog.text
    if "invalid literal" not in said:
        assert caplog.text.count("\n") == 1
    for event in (IDENTIFY, http("verb=Identify", "HEAD")):
        answer = in_time(instance, event, Context())
        assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "30")
        assert content(answer) in (b"The repository is not ready; try again later.\n", b"")
    entry = json.loads(published.lines[0])
    assert (entry["status"], entry["path"]) == (503, "/oai")
    assert entry["request"] == Context().aws_request_id
    assert published.held() == []
    del published.environment[name]
    if right is not None:
        published.environment[name] = right
    assert instance(IDENTIFY, Context())["statusCode"] == 200


def test_a_file_in_the_zip_is_read_and_overridden(published: Lambda) -> None:
    (published.root / "sheaf.toml").write_text(
        '[repository]\nname = "From the file"\n[pages]\nrecords = 3\n[serve]\nretry_seconds = 7\n'
    )
    instance = published.begin()
    assert b"From the file" in content(instance(IDENTIFY))
    assert content(instance(http(LIST))).count(b"<record>") == 10
    (published.root / "sheaf.toml").write_text("[repository\n")
    assert published.begin()(IDENTIFY)["statusCode"] == 503


def test_a_crosswalk_in_the_zip_is_looked_over(
    published: Lambda, caplog: pytest.LogCaptureFixture
) -> None:
    folder = published.root / "formats" / "crosswalks"
    folder.mkdir(parents=True)
    (published.root / "sheaf.toml").write_text('[formats]\ntemplates = "formats"\n')
    (folder / "capture-oai_dc.xml").write_text("{{ titel }}")
    instance = published.begin()
    assert "capture-oai_dc.xml, line 1" in caplog.text
    assert instance(IDENTIFY)["statusCode"] == 503
    (folder / "capture-oai_dc.xml").unlink()
    assert instance(IDENTIFY)["statusCode"] == 200


def test_the_access_log_may_be_switched_off(published: Lambda) -> None:
    published.environment["SHEAF_SERVE_ACCESS_LOG"] = ""
    assert published.begin()(IDENTIFY)["statusCode"] == 200
    assert published.lines == []


@pytest.mark.sampled(3)
@in_real_time
@pytest.mark.parametrize("fault", [Slow(60), Trickle(60), Lost()], ids=lambda fault: str(fault))
@pytest.mark.parametrize("where", ["current.json", "records/records/"])
def test_after_a_request_that_hung_in_the_bucket_the_next_is_answered(
    published: Lambda, fault: Any, where: str
) -> None:
    instance = published.begin()
    published.proxy.fault = lambda seen: fault if where in seen.key else None
    hung = [one for one in published.proxy.seen if where in one.key]
    answer = in_time(instance, http(LIST), Context(2.5))
    # A pointer that was read before stands in for one that does not come.
    first = 200 if where == "current.json" else 503
    assert (answer["statusCode"], answer["headers"].get("Retry-After", "")) == (
        first,
        "30" if first == 503 else "",
    )
    assert len([one for one in published.proxy.seen if where in one.key]) > len(hung)
    published.proxy.fault = lambda seen: None
    for _ in range(3):
        answer = in_time(instance, http(LIST), Context())
        assert answer["statusCode"] == 200, answer
        assert content(answer).count(b"<record>") == 10
    assert len(published.held()) == 1
    statuses = [json.loads(line)["status"] for line in published.lines]
    assert statuses == [first, 200, 200, 200]


@in_real_time
def test_a_statement_that_hangs_is_interrupted(published: Lambda) -> None:
    instance = published.begin()
    serving = instance._application
    files, catalogue = serving._repository._files, serving._repository._catalogue
    manifest = catalogue.manifest(1)
    file = next(iter(catalogue.files(manifest, "records")))
    sql = "SELECT $file, sum(hash(a.range * b.range)) FROM range(100000000) a, range(100000000) b"

    def hang(number: int) -> Any:
        return files.rows(sql, file)

    serving._repository.manifest = hang  # type: ignore[method-assign]
    assert in_time(instance, http(LIST), Context(2.5))["statusCode"] == 503
    assert ended("sheaf-answer", 5)
    assert published.held() == []
    assert in_time(instance, IDENTIFY, Context())["statusCode"] == 200


def test_a_statement_that_was_given_up_is_no_damage(published: Lambda) -> None:
    repository = published.begin()._application._repository
    file = next(iter(repository._catalogue.files(repository.manifest(1), "records")))
    sql = "SELECT $file, sum(hash(a.range * b.range)) FROM range(100000000) a, range(100000000) b"
    timer = threading.Timer(0.5, repository.close)
    timer.start()
    with pytest.raises(Exception, match=r"reading .* was cancelled") as told:
        repository._files.rows(sql, file)
    assert type(told.value).__name__ == "StoreError"
    timer.join()


@in_real_time
def test_many_requests_that_hang_leave_nothing_behind(published: Lambda) -> None:
    instance = published.begin()
    for _ in range(2):
        published.proxy.fault = lambda seen: Slow(4) if "records/records/" in seen.key else None
        assert in_time(instance, http(LIST), Context(2))["statusCode"] == 503
        assert published.held() == []
    published.proxy.fault = lambda seen: None
    assert in_time(instance, http(LIST), Context())["statusCode"] == 200
    assert ended("sheaf-answer", 10)
    assert len(published.held()) == 1


@pytest.mark.parametrize(
    ("memory", "disk", "shares"),
    [
        (128, 512, (64, 8, 256)),
        (512, 512, (128, 32, 256)),
        (1024, 512, (384, 64, 256)),
        (1024, 10_240, (384, 64, 5120)),
        (3008, 20, (512, 64, 16)),
    ],
)
def test_shares(memory: int, disk: int, shares: tuple[int, int, int]) -> None:
    found = Shares.of(memory, disk)
    assert (found.database, found.rows, found.disk) == shares


def test_it_takes_its_shares(published: Lambda) -> None:
    published.environment |= {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512", "SHEAF_STORE_CACHE": "17"}
    repository: Any = published.begin()._application._repository
    connection: engine.Connection = repository._files._connection
    limit = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    assert limit == [("122.0 MiB",)]
    assert repository._files._cache._limit == 32 << 20
    mirror = repository._catalogue.reader.cache
    assert (mirror._limit, mirror._grace) == (17 << 20, 5.0)


def test_a_form_is_read_as_arguments_are(published: Lambda) -> None:
    instance = published.begin()
    form = {"content-type": "application/x-www-form-urlencoded"}
    for kind in (http, rest):
        asked = kind(method="POST", headers=form, body=LIST.encode())
        assert content(instance(asked, Context())).count(b"<record>") == 10


@pytest.mark.parametrize(
    "event",
    [
        None,
        {},
        {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}},
        rest() | {"multiValueQueryStringParameters": {"verb": ["\ud800"]}},
        http(method="POST") | {"body": "x", "isBase64Encoded": True},
    ],
)
def test_what_no_gateway_writes_is_refused(published: Lambda, event: Any) -> None:
    instance = published.begin()
    assert instance(event, Context())["statusCode"] == 400
    assert instance(IDENTIFY, Context())["statusCode"] == 200


PROGRAM = """
import json, os, sys
from functions.site.function import handler
class Context:
    aws_request_id = "an-id"
    def get_remaining_time_in_millis(self): return 28000
answer = handler(json.loads(sys.argv[1]), Context())
templates = handler._application._renderer.templates
told = {"answer": answer, "modules": sorted(sys.modules), "loops": [*templates._loops]}
print(json.dumps(told))
sys.stdout.flush()
os._exit(0)
"""


def test_the_handler_itself_in_a_process_of_its_own(published: Lambda) -> None:
    environment = {k: v for k, v in published.environment.items() if k != "HOME"}
    environment |= {"PATH": "/usr/bin:/bin", "LAMBDA_TASK_ROOT": str(published.root)}
    packages = [p for p in sys.path if p.endswith("site-packages")]
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *packages])
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(http(LIST))],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    log, told = map(json.loads, done.stdout.splitlines())
    assert (log["request"], log["status"], log["rows"]) == ("an-id", 200, 10)
    assert content(told["answer"]).count(b"<record>") == 10
    strangers = {name.partition(".")[0] for name in told["modules"]} - {*sys.stdlib_module_names}
    deployed = DEPLOYED | {"functions", "templates", "typing_extensions"}
    assert {name for name in strangers if not name.startswith("_")} <= deployed
    # A first page loads and compiles only what a list needs: no page, search or other kind.
    own = [name for name in told["modules"] if name.startswith("functions.")]
    assert not [n for n in own if n.startswith(("functions.content", "functions.search"))]
    assert (len(own) <= 90, "functions.site.site" in own) == (True, False)
    assert told["loops"] == [["oai/record.xml", "crosswalks/capture-oai_dc.xml"]]
    assert done.stderr == ""
