"""The policies of infra/policies: who has them alone deploys, and publishes, and can do no more."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.aws.archive import Archive, pages
from tests.aws.cloud import STACK, Cloud, running
from tests.aws.cloud import Stack as Deployed
from tests.aws.test_template import audited
from tests.template import ROOT

POLICIES = ROOT / "infra" / "policies"
LIMIT = 6144
"""Characters of a managed policy, blanks apart."""
PARTS = {"Ingest": "yes", "Content": "yes", "Filesets": "yes"}


def policy(name: str, bucket: str = "BUCKET") -> dict[str, Any]:
    text = (POLICIES / f"{name}.json").read_text("utf-8").replace("BUCKET", bucket)
    policy: dict[str, Any] = json.loads(text)
    return policy


def keys_of(cloud: Cloud, name: str, bucket: str = "BUCKET") -> dict[str, str]:
    """Return the keys of a new user who has a policy and nothing else."""
    iam = cloud.client("iam")
    iam.create_user(UserName=name)
    document = json.dumps(policy(name, bucket))
    iam.put_user_policy(UserName=name, PolicyName=name, PolicyDocument=document)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
    }


@pytest.mark.parametrize(
    ("name", "known"),
    [
        # AWS's own transform has no account, and not every action of a service a name in its ARN.
        ("deploy", {"INVALID_ARN", "RESOURCE_MISMATCH", "RESOURCE_STAR"}),
        # That an execution is described is younger than parliament's list.
        ("publish", {"RESOURCE_MISMATCH"}),
    ],
)
def test_parliament_finds_nothing_in_a_policy(name: str, known: set[str]) -> None:
    assert audited(policy(name)) <= known
    assert len(json.dumps(policy(name), separators=(",", ":"))) <= LIMIT
    for statement in policy(name)["Statement"]:
        if "*" in statement["Resource"]:
            assert not [action for action in statement["Action"] if "*" in action]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with running(tmp_path_factory.mktemp("cloud") / "home") as cloud:
        yield cloud


@pytest.fixture(scope="module")
def deployer(cloud: Cloud) -> Cloud:
    return replace(cloud, keys=keys_of(cloud, "deploy"))


@pytest.fixture(scope="module")
def stack(cloud: Cloud, deployer: Cloud, artefacts: Path) -> Deployed:
    """Deploy by the policy, also SAM's own bucket, which refuses the emulator's plain HTTP."""
    deployer.sam("package", "--resolve-s3", "--template-file", artefacts / "template.yaml")
    s3 = cloud.client("s3")
    (own,) = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    s3.delete_bucket_policy(Bucket=own)
    return deployer.deploy(artefacts, **PARTS)


def test_who_may_deploy_deploys_with_all_parts(cloud: Cloud, stack: Deployed) -> None:
    assert stack.status == "CREATE_COMPLETE"
    assert {"IngestFunction", "ContentFunction", "FilesetFunction"} <= set(stack.resources)


def test_who_may_deploy_does_not_read_the_store_or_make_users(
    cloud: Cloud, deployer: Cloud, stack: Deployed
) -> None:
    bucket = stack.outputs["Bucket"]
    cloud.client("s3").put_object(Bucket=bucket, Key="store/x", Body=b"x")
    cloud.client("s3").create_bucket(Bucket="another")
    s3, iam = (deployer.client(name, deployer.keys) for name in ("s3", "iam"))
    for refused in (
        lambda: s3.get_object(Bucket=bucket, Key="store/x"),
        lambda: s3.delete_object(Bucket=bucket, Key="store/x"),
        lambda: s3.list_objects_v2(Bucket="another"),
        lambda: iam.create_user(UserName="another"),
        lambda: iam.create_role(RoleName="another", AssumeRolePolicyDocument="{}"),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            refused()
    cloud.client("s3").delete_object(Bucket=bucket, Key="store/x")


def test_who_may_publish_ingests_and_publishes_and_does_no_more(
    cloud: Cloud, stack: Deployed, tmp_path: Path
) -> None:
    bucket = stack.outputs["Bucket"]
    keys = keys_of(cloud, "publish", bucket)
    settings = {"SHEAF_REPOSITORY_NAMESPACE": "archive.example.org"}
    environment = cloud.environment(keys) | settings
    store = Archive(stack.outputs["Store"], environment, tmp_path)
    store.ingest("one", pages(0, 20))
    store.sheaf("publish")
    store.sheaf("verify")
    assert len(store.rows("SELECT identifier FROM records")) == 20
    told = cloud.client("cloudformation", keys).describe_stacks(StackName=STACK)
    assert told["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
    s3 = cloud.client("s3", keys)
    for refused in (
        lambda: s3.put_object(Bucket=bucket, Key="another/x", Body=b"x"),
        lambda: s3.put_bucket_policy(Bucket=bucket, Policy="{}"),
        lambda: cloud.client("cloudformation", keys).delete_stack(StackName=STACK),
        lambda: cloud.client("lambda", keys).list_functions(),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            refused()


def test_who_may_deploy_deletes_it_again(deployer: Cloud, stack: Deployed) -> None:
    deployer.delete()
    with pytest.raises(ClientError, match="does not exist"):
        deployer.stack()
