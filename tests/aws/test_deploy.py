"""A real `sam deploy` into an emulated cloud that enforces policies, and the life of the stack.

One stack for all; the tests follow one another, as a stack's life does.
"""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.exceptions import ClientError
from sickle import Sickle

from tests.aws.archive import Archive, pages
from tests.aws.cloud import STACK, Cloud, running
from tests.aws.cloud import Stack as Deployed
from tests.aws.request import Answer, Request, asked, over_http
from tests.aws.test_answers import undated
from tests.aws.test_limits import unavailable

PARAMETERS = {
    "RepositoryName": "Archiv",
    "AdminEmail": "keeper@archive.example.org",
    "Namespace": "archive.example.org",
    "Content": "yes",
    "ExpireSchedule": "rate(7 days)",
    "ExpireKeep": "1",
    "ExpireDays": "0",
    "VerifySchedule": "cron(0 4 * * ? *)",
    "VerifyParts": "1",
}
LEAKS = re.compile(rb"arn:aws|123456789012|000000000000|AccessDenied|sheaf-proof|not authorized")


class Endpoint:
    """The stack's HTTP API, as a harvester has it."""

    def __init__(self, cloud: Cloud, stack: Deployed) -> None:
        """Take the address that the stack tells, or where the emulator has it."""
        self.base = self.url = stack.outputs["BaseUrl"]
        self.host = self.url.split("/")[2]
        if cloud.url:
            self.host = f"{stack.outputs['HttpApiId']}.execute-api.{cloud.host}"
            self.host = self.host.replace("127.0.0.1", "localhost")
            self.url = f"{cloud.url}/oai"

    def ask(self, request: Request) -> Answer:
        """Return what the API answers."""
        site = self.url.removesuffix("/oai")
        target = f"{site}{request.path}{'?' if request.query else ''}{request.query}"
        headers = {**request.sent, "host": self.host}
        del headers["x-forwarded-proto"]
        post = urllib.request.Request(
            target, data=request.body or None, headers=headers, method=request.method
        )
        try:
            with urllib.request.urlopen(post, timeout=60) as reply:
                status, found, body = reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            status, found, body = error.code, error.headers, error.read()
        return Answer(status, {k.lower(): v for k, v in found.items()}, body)

    def harvest(self, **arguments: str) -> dict[str, bool]:
        """Return every identifier by whether it is deleted, as a stranger's client finds them."""
        client = Sickle(self.url, headers={"Host": self.host}, timeout=60)
        found: dict[str, bool] = {}
        for record in client.ListRecords(metadataPrefix="oai_dc", **arguments):
            assert record.header.identifier not in found
            found[record.header.identifier] = record.header.deleted
        return found


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with running(tmp_path_factory.mktemp("cloud") / "home") as one:
        yield one


@pytest.fixture(scope="module")
def stack(cloud: Cloud, artefacts: Path) -> Deployed:
    return cloud.deploy(artefacts, **PARAMETERS)


@pytest.fixture(scope="module")
def endpoint(cloud: Cloud, stack: Deployed) -> Endpoint:
    return Endpoint(cloud, stack)


@pytest.fixture(scope="module")
def store(cloud: Cloud, stack: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Give the stack's store as a workstation reaches it."""
    environment = cloud.environment() | {
        "SHEAF_REPOSITORY_NAMESPACE": PARAMETERS["Namespace"],
        "SHEAF_REPOSITORY_NAME": PARAMETERS["RepositoryName"],
    }
    return Archive(stack.outputs["Store"], environment, tmp_path_factory.mktemp("station"))


def known(store: Archive) -> dict[str, bool]:
    """Return what the snapshot has, by `sheaf query`."""
    return {
        r["identifier"]: r["deleted"] for r in store.rows("SELECT identifier, deleted FROM records")
    }


def until(found: Callable[[], object], wanted: object, seconds: float = 30) -> None:
    """Wait until both are the same."""
    end = time.monotonic() + seconds
    while (last := found()) != wanted:
        assert time.monotonic() < end, f"{last!r} and not {wanted!r}"
        time.sleep(0.5)


def test_a_stack_that_is_new_has_nothing_published(stack: Deployed, endpoint: Endpoint) -> None:
    assert stack.status == "CREATE_COMPLETE"
    answer = endpoint.ask(asked("Identify"))
    unavailable(answer)
    assert b"Nothing is published" in answer.body


def test_what_is_published_from_here_is_harvested_there(store: Archive, endpoint: Endpoint) -> None:
    store.ingest("one", pages(0, 2300), "--collection", "serials:harvest_november07")
    store.sheaf("publish")
    store.ingest("two", pages(2250, 2310, "Changed"))
    store.sheaf("publish")
    store.sheaf("withdraw", "--url-prefix", "http://www.h3.example.cz/", "--reason", "asked for")
    until(lambda: endpoint.ask(asked("Identify")).status, 200)
    expected = known(store)
    assert sum(expected.values()) > 100
    until(lambda: len(endpoint.harvest()), len(expected))
    assert endpoint.harvest() == expected
    part = endpoint.harvest(set="collection:serials")
    assert 2000 < len(part) < len(expected)
    identify = endpoint.ask(asked("Identify")).plain.decode()
    assert f"<baseURL>{endpoint.base}</baseURL>" in identify
    assert "<repositoryName>Archiv</repositoryName>" in identify
    assert "<adminEmail>keeper@archive.example.org</adminEmail>" in identify


def checked(store: Archive, endpoint: Endpoint, *options: object) -> dict[str, Any]:
    """Return what `sheaf check` reports of the address that the stack tells: no fault."""
    line = store.line("check", endpoint.base, "--json", *options)
    done = subprocess.run(line, env=store.all, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(done.stdout)
    failed = {row["number"]: row for row in report["checks"] if row["state"] == "failed"}
    grave = {number for number, row in failed.items() if row["severity"] != "advice"}
    assert not grave, [failed[number]["findings"] for number in grave]
    return report


def test_a_check_finds_nothing(store: Archive, endpoint: Endpoint, tmp_path: Path) -> None:
    """`sheaf check` after a deploy, with the page that one would look at."""
    page = tmp_path / "card.html"
    report = checked(store, endpoint, "--html", page)
    assert report["facts"]["records"] == len(known(store))
    assert endpoint.base in page.read_text("utf-8")


def test_archived_bytes_are_had_from_where_they_lie(
    cloud: Cloud, stack: Deployed, store: Archive, endpoint: Endpoint
) -> None:
    """By the role of the one function, and not by that of the other."""
    bucket, _, prefix = stack.outputs["Store"].removeprefix("s3://").partition("/")
    key = f"{prefix}/warcs/one.warc.gz"
    cloud.client("s3").upload_file(str(store.folder / "one.warc.gz"), bucket, key)
    (page,) = pages(0, 1).values()
    (row,) = store.rows("SELECT identifier, url FROM captures WHERE url LIKE '%?a=0&b=%'")
    got = Request(path=f"/content/{row['identifier']}")
    until(lambda: endpoint.ask(got).status, 200)
    answer = endpoint.ask(got)
    assert answer.body == page
    assert "sandbox" in answer.headers["content-security-policy"]
    part = Request(path=got.path, headers={"range": "bytes=3-9"})
    answer = endpoint.ask(part)
    assert (answer.status, answer.body) == (206, page[3:10])
    answer = endpoint.ask(Request("url=h1.example.cz&matchType=domain&limit=3", path="/cdx"))
    assert (answer.status, answer.plain.count(b"\n")) == (200, 3)
    search = "url=h1.example.cz&matchType=domain&limit=3&output=json"
    answer = endpoint.ask(Request(search, path="/cdx/search/cdx"))
    assert (answer.status, answer.plain.count(b"\n")) == (200, 4)
    gone = endpoint.ask(Request("url=www.h3.example.cz&matchType=host", path="/cdx"))
    assert (gone.status, gone.body) == (200, b"")
    assert endpoint.ask(Request(urlencode({"url": row["url"]}), path="/timemap/link")).status == 200
    assert endpoint.ask(Request(path="/content/nobody")).status == 404


@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_the_api_hands_on_methods_and_codings(
    method: str, gzipped: bool, store: Archive, endpoint: Endpoint
) -> None:
    request = asked("ListRecords", method, gzipped, metadataPrefix="oai_dc")
    answer = endpoint.ask(request)
    assert answer.status == 200
    assert answer.plain.count(b"<record>") == (0 if method == "HEAD" else 1000)
    assert answer.headers.get("content-encoding") == ("gzip" if gzipped else None)
    if method == "GET":
        host = endpoint.host.encode()
        with store.served() as url:
            there = Request(request.query, headers={**request.headers, "host": endpoint.host})
            # an account's gateway is asked by https
            base = endpoint.base.removesuffix("/oai").encode()
            theirs = over_http(url, there).plain.replace(b"http://" + host, base)
        assert undated(theirs) == undated(answer.plain)


def keys_of(cloud: Cloud, stack: Deployed, role: str) -> dict[str, str]:
    """Return the keys of a user who may do what a role may."""
    iam = cloud.client("iam")
    name = f"{STACK}-like-{role}"
    iam.create_user(UserName=name)
    role_name = stack.resources[role]
    for policy in iam.list_role_policies(RoleName=role_name)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role_name, PolicyName=policy)["PolicyDocument"]
        text = document if isinstance(document, str) else json.dumps(document)
        iam.put_user_policy(UserName=name, PolicyName=policy, PolicyDocument=text)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
    }


def test_who_serves_may_read_what_is_published_and_nothing_else(
    cloud: Cloud, stack: Deployed, store: Archive
) -> None:
    keys = keys_of(cloud, stack, "OaiRole")
    s3 = cloud.client("s3", keys)
    bucket = stack.outputs["Bucket"]
    own = cloud.client("s3")
    own.put_object(Bucket=bucket, Key="store/intake/secret/x", Body=b"x")
    own.put_object(Bucket=bucket, Key="another/current.json", Body=b"x")
    found = own.list_objects_v2(Bucket=bucket, Prefix="store/")["Contents"]
    record = next(one["Key"] for one in found if "/records/" in one["Key"])
    for key in ("store/current.json", "store/snapshots/1/manifest.json", record):
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    for refused in (
        lambda: s3.get_object(Bucket=bucket, Key="store/intake/secret/x"),
        lambda: s3.get_object(Bucket=bucket, Key="another/current.json"),
        lambda: s3.put_object(Bucket=bucket, Key="store/current.json", Body=b"{}"),
        lambda: s3.put_object(Bucket=bucket, Key="store/records/x", Body=b"x"),
        lambda: s3.delete_object(Bucket=bucket, Key="store/current.json"),
        lambda: s3.get_bucket_policy(Bucket=bucket),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            refused()
    own.delete_object(Bucket=bucket, Key="store/intake/secret/x")
    reading = Archive(store.store, {**store.environment, **keys}, store.folder)
    assert known(reading) == known(store)
    with pytest.raises(AssertionError, match="permission denied"):
        reading.ingest("refused", pages(9000, 9001))


def test_who_publishes_may_do_so_and_no_more(
    cloud: Cloud, stack: Deployed, store: Archive, endpoint: Endpoint
) -> None:
    keys = keys_of(cloud, stack, "PublishRole")
    publishing = Archive(store.store, {**store.environment, **keys}, store.folder)
    store.ingest("three", pages(2400, 2410))
    publishing.sheaf("publish")
    with pytest.raises(AssertionError, match="permission denied"):
        publishing.ingest("refused", pages(9000, 9001))
    until(lambda: endpoint.harvest() == known(store), wanted=True)
    s3, bucket = cloud.client("s3", keys), stack.outputs["Bucket"]
    for refused in (
        lambda: s3.put_object(Bucket=bucket, Key="another/x", Body=b"x"),
        lambda: s3.put_object(Bucket=bucket, Key="store/intake/x", Body=b"x"),
        lambda: s3.delete_object(Bucket=bucket, Key="store/current.json"),
        lambda: s3.get_object(Bucket=bucket, Key="another/current.json"),
        lambda: s3.delete_bucket(Bucket=bucket),
        lambda: cloud.client("iam", keys).list_users(),
        lambda: cloud.client("lambda", keys).list_functions(),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            refused()


def invoked(cloud: Cloud, name: str, event: Mapping[str, Any]) -> tuple[bool, Any]:
    """Invoke a function; return whether it came through, and what it returned."""
    reply = cloud.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event).encode())
    return "FunctionError" not in reply, json.loads(reply["Payload"].read())


def test_the_publisher_publishes_what_was_ingested(
    cloud: Cloud, stack: Deployed, store: Archive, endpoint: Endpoint
) -> None:
    before = known(store)
    store.ingest("four", pages(3000, 3025, "By the function"))
    name = stack.outputs["PublishFunctionName"]
    well, told = invoked(cloud, name, {})
    assert well, told
    assert (told["new"], told["changed"]) == (25, 0)
    after = known(store)
    assert len(after) == len(before) + 25
    until(endpoint.harvest, after)
    well, told = invoked(cloud, name, {"source": "aws.s3"})
    assert well, told
    assert json.loads(store.sheaf("status", "--json"))["intake"] == []


def test_without_its_policy_the_function_is_503_and_tells_nothing(
    cloud: Cloud, stack: Deployed, store: Archive, endpoint: Endpoint
) -> None:
    iam, role = cloud.client("iam"), stack.resources["OaiRole"]
    document = iam.get_role_policy(RoleName=role, PolicyName="read-store")["PolicyDocument"]
    iam.delete_role_policy(RoleName=role, PolicyName="read-store")
    try:
        # What it read last it may tell for five minutes.
        until(lambda: endpoint.ask(asked("Identify")).status, 503, 400)
        for request in (
            asked("Identify"),
            asked("ListRecords", "POST", metadataPrefix="oai_dc"),
            asked("ListSets", gzipped=True),
            Request(path="/"),
        ):
            answer = endpoint.ask(request)
            unavailable(answer)
            assert not LEAKS.search(answer.body)
            assert not LEAKS.search(json.dumps(dict(answer.headers)).encode())
    finally:
        text = document if isinstance(document, str) else json.dumps(document)
        iam.put_role_policy(RoleName=role, PolicyName="read-store", PolicyDocument=text)
    until(lambda: endpoint.ask(asked("Identify")).status, 200)
    assert endpoint.harvest() == known(store)


def change_code(artefacts: Path, folder: Path) -> Path:
    """Return what was built as another commit would have it: it answers in other words."""
    shutil.copytree(artefacts, folder)
    template = folder / "OaiFunction" / "templates" / "oai" / "Identify.xml"
    text = template.read_text("utf-8")
    template.write_text(text.replace("<Identify>", "<Identify><!-- of later code -->"), "utf-8")
    return folder


def test_an_update_is_seen_at_the_same_address(
    cloud: Cloud, stack: Deployed, artefacts: Path, endpoint: Endpoint, tmp_path: Path
) -> None:
    """Of the code, and of a parameter alone."""
    identify = asked("Identify")
    assert b"of later code" not in endpoint.ask(identify).plain
    renamed = {**PARAMETERS, "RepositoryName": "Renamed"}
    later = change_code(artefacts, tmp_path / "later")
    for built, parameters, told in (
        (artefacts, renamed, b"<repositoryName>Renamed</"),
        (later, renamed, b"of later code"),
    ):
        updated = cloud.deploy(built, **parameters)
        assert updated.status == "UPDATE_COMPLETE"
        assert updated.outputs == stack.outputs
        until(lambda told=told: told in endpoint.ask(identify).plain, wanted=True)


def test_behind_cloudfront_nobody_else_is_answered(
    cloud: Cloud, artefacts: Path, endpoint: Endpoint
) -> None:
    edge = {"CloudFront": "yes", "RatePerClient": "2000", "CloudFrontLogs": "yes"}
    behind = cloud.deploy(artefacts, **PARAMETERS, **edge)
    assert behind.status == "UPDATE_COMPLETE"
    secrets = cloud.client("secretsmanager")
    value = secrets.get_secret_value(SecretId=behind.resources["OriginSecret"])["SecretString"]
    assert len(value) == 48
    for path in ("/oai", "/", "/content/x", "/cdx"):
        until(lambda path=path: endpoint.ask(Request("verb=Identify", path=path)).status, 403)
        wrong = Request("verb=Identify", path=path, headers={"x-origin-secret": value[1:]})
        assert endpoint.ask(wrong).status == 403
    through = Request("verb=Identify", headers={"x-origin-secret": value})
    assert endpoint.ask(through).status == 200
    config = cloud.client("cloudfront").get_distribution(Id=behind.resources["Distribution"])
    config = config["Distribution"]["DistributionConfig"]
    assert config["WebACLId"].split("/")[1:2] == ["webacl"]
    assert config["Logging"]["Bucket"].startswith(behind.outputs["CloudFrontLogs"])
    (origin,) = config["Origins"]["Items"]
    (header,) = origin["CustomHeaders"]["Items"]
    assert header == {"HeaderName": "x-origin-secret", "HeaderValue": value}
    logs = cloud.client("logs")
    for log in ("OaiLog", "ContentLog", "ApiLog"):
        events = logs.filter_log_events(logGroupName=behind.resources[log])["events"]
        assert not [event for event in events if value in event["message"]]
    cloud.deploy(artefacts, **PARAMETERS, **dict.fromkeys(edge, "no") | {"RatePerClient": "0"})
    until(lambda: endpoint.ask(asked("Identify")).status, 200)


def test_an_update_changes_nothing_of_what_is_published(store: Archive, endpoint: Endpoint) -> None:
    assert endpoint.harvest() == known(store)


def test_the_tasks_of_the_timers_are_carried_out(
    cloud: Cloud, stack: Deployed, store: Archive, endpoint: Endpoint
) -> None:
    """By the role of the publisher; snapshots that were replaced a minute ago are retired."""
    scheduler, name = cloud.client("scheduler"), stack.outputs["PublishFunctionName"]
    told = {}
    for timer in ("ExpireTimer", "VerifyTimer"):
        schedule = scheduler.get_schedule(Name=stack.resources[timer])
        given = schedule["Target"]["Input"].replace("<aws.scheduler.scheduled-time>", "2026-11-23")
        well, told[timer] = invoked(cloud, name, json.loads(given))
        assert well, told
    assert 1 in told["ExpireTimer"]["retired"]
    checked = told["VerifyTimer"]
    assert (checked["part"], checked["damage"]) == ("1/1", 0)
    assert checked["read"] == checked["files"] > 0
    assert endpoint.harvest() == known(store)


def test_a_stack_that_is_deleted_leaves_bucket_and_logs_and_may_come_again(
    cloud: Cloud, stack: Deployed, artefacts: Path, store: Archive, endpoint: Endpoint
) -> None:
    expected = known(store)
    cloud.delete()
    with pytest.raises(ClientError, match="does not exist"):
        cloud.stack()
    assert endpoint.ask(asked("Identify")).status in (403, 404)
    names = [f["FunctionName"] for f in cloud.client("lambda").list_functions()["Functions"]]
    assert not [name for name in names if STACK in name]
    assert known(store) == expected
    assert store.sheaf("verify")
    groups = cloud.client("logs").describe_log_groups()["logGroups"]
    # Of a part the emulator deletes those too, where AWS keeps them.
    logs = {stack.resources[name] for name in ("OaiLog", "PublishLog", "ApiLog")}
    assert logs <= {group["logGroupName"] for group in groups}
    again = cloud.deploy(artefacts, **PARAMETERS)
    assert again.status == "CREATE_COMPLETE"
    # The emulator makes up the same names again for the others, where AWS does not.
    assert again.resources["ApiLog"] not in logs
