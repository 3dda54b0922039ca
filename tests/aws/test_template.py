"""The template before AWS's linters, and its build.

parliament knows every action and what it is of, cfn-lint every property. cfn-lint is given what
SAM's own transform makes of the template, for it does not look into SAM's resources.
"""

import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import parliament
import pytest
from cfnlint.api import lint as cfn_lint
from cfnlint.config import ManualArgs
from samtranslator.translator.transform import transform

from tests import test_template as ours
from tests.aws.build import built, function, sam
from tests.template import PARTS, TEMPLATE, Stack, load

REGIONS = ["us-east-1", "eu-central-1"]
WHOLE = load(TEMPLATE.read_text("utf-8"))
# Linters do not know what SAM makes of a deployment that shifts requests.
FULL = {name: value for name, value in ours.FULL.items() if name != "Deployment"}
SIZES = {
    # megabytes: the bound of the serving function is for arm64, the default
    ("OaiFunction", "arm64"): 92,
    ("OaiFunction", "x86_64"): 99,
    ("ContentFunction", "arm64"): 100,
    ("ContentFunction", "x86_64"): 110,
    ("PublishFunction", "arm64"): 250,
    ("PublishFunction", "x86_64"): 250,
    ("FilesetFunction", "arm64"): 250,
    ("FilesetFunction", "x86_64"): 250,
}
MACHINES = {"arm64": 183, "x86_64": 62}
"""e_machine of an ELF file."""


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGIONS[0])  # SAM's transform asks for it


class NoPolicies:
    """Managed policies, of which the template uses none."""

    def load(self) -> dict[str, str]:
        return {}


def expanded(template: dict[str, Any], **parameters: str) -> dict[str, Any]:
    """Return the template as SAM's transform hands it to CloudFormation."""
    template = copy.deepcopy(template)
    for resource in template["Resources"].values():
        kind, properties = resource["Type"], resource["Properties"]
        if kind == "AWS::Serverless::Function":
            properties["CodeUri"] = "s3://bucket/code.zip"
        if kind == "AWS::Lambda::Function":
            properties["Code"] = {"S3Bucket": "bucket", "S3Key": "code.zip"}
        if kind == "AWS::CloudFormation::Stack":
            properties["TemplateURL"] = "https://bucket.s3.amazonaws.com/part.yaml"
    if "Transform" not in template:
        return template
    found: dict[str, Any] = transform(template, parameters, NoPolicies())  # type: ignore[arg-type]
    return found


def linted(template: dict[str, Any], **parameters: str) -> set[str]:
    """Return the ids of the rules of cfn-lint that the expanded template breaks."""
    text = json.dumps(expanded(template, **parameters))
    return {match.rule.id for match in cfn_lint(text, config=ManualArgs(regions=REGIONS))}


def policies(stack: Stack) -> list[tuple[str, dict[str, Any]]]:
    """Return every policy of the stack by the resource that has it: of roles, bucket and queue."""
    found = [
        (name, policy["PolicyDocument"])
        for name, role in stack.resources("AWS::IAM::Role").items()
        for policy in role["Policies"]
    ]
    for kind in ("AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy"):
        found += [(name, p["PolicyDocument"]) for name, p in stack.resources(kind).items()]
    return found


def audited(document: dict[str, Any]) -> set[str]:
    """Return what parliament finds in a policy."""
    return {
        finding.issue for finding in parliament.analyze_policy_string(json.dumps(document)).findings
    }


@pytest.mark.parametrize("environment", ["default", "prod", "local"])
def test_sam_finds_the_template_valid(environment: str, tmp_path: Path) -> None:
    done = sam("validate", "--config-env", environment, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is a valid SAM Template" in done.stdout + done.stderr


@pytest.mark.parametrize("deployment", ["false", "Canary10Percent5Minutes"])
def test_cfn_lint_finds_nothing_in_what_sam_makes_of_it(deployment: str) -> None:
    assert linted(WHOLE, Deployment=deployment) == set()


@pytest.mark.parametrize("path", PARTS, ids=[path.stem for path in PARTS])
def test_cfn_lint_finds_nothing_in_a_part(path: Path) -> None:
    assert linted(load(path.read_text("utf-8"))) == set()


def test_sam_makes_versions_and_has_codedeploy_where_it_is_asked_for() -> None:
    at_once = expanded(WHOLE)["Resources"]
    steps = expanded(WHOLE, Deployment="Canary10Percent5Minutes")["Resources"]
    assert not [one for one in at_once.values() if "CodeDeploy" in one["Type"]]
    for resources in (at_once, steps):
        alias = resources["OaiFunctionAliaslive"]
        (version,) = (key for key in resources if key.startswith("OaiFunctionVersion"))
        assert alias["Properties"]["FunctionVersion"] == {"Fn::GetAtt": [version, "Version"]}
    assert "UpdatePolicy" not in at_once["OaiFunctionAliaslive"]
    update = steps["OaiFunctionAliaslive"]["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
    group = steps[update["DeploymentGroupName"]["Ref"]]
    assert "DEPLOYMENT_STOP_ON_ALARM" in str(group["Properties"]["AutoRollbackConfiguration"])


@pytest.mark.parametrize("parameters", [{}, FULL], ids=["defaults", "all"])
def test_parliament_finds_nothing_in_the_policies(parameters: dict[str, str]) -> None:
    stack = Stack(WHOLE, **parameters)
    found = [(name, audited(document)) for name, document in policies(stack)]
    assert len(found) >= 6
    for name, issues in found:
        # A bucket's policy denies everything to everybody, which is a wildcard on purpose. That an
        # execution is described, as a Distributed Map demands, is younger than parliament's list.
        known = {"StoreBucketPolicy", "IngestMachineRole"}
        assert issues <= ({"RESOURCE_MISMATCH"} if name in known else set()), name


def test_the_linters_look_at_what_they_are_given() -> None:
    """Else that they find nothing would prove nothing."""
    template = copy.deepcopy(WHOLE)
    template["Resources"]["HttpRoute"]["Properties"]["ApiId"] = {"Ref": "HttpAp"}
    policy = template["Resources"]["OaiRole"]["Properties"]["Policies"][0]["PolicyDocument"]
    policy["Statement"][0]["Action"] = "s3:GetObjects"
    assert linted(template) >= {"W3037"}
    assert linted(template) & {"E1012", "E1020"}
    issues = set().union(*(audited(document) for _, document in policies(Stack(template))))
    assert "UNKNOWN_ACTION" in issues


# What runs at CloudFront's edge


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("verb=Identify", "verb=Identify"),
        (
            "verb=ListRecords&set=a%3Ab&metadataPrefix=oai_dc",
            "metadataPrefix=oai_dc&set=a%3Ab&verb=ListRecords",
        ),
        (
            "set=a%3Ab&metadataPrefix=oai_dc&verb=ListRecords",
            "metadataPrefix=oai_dc&set=a%3Ab&verb=ListRecords",
        ),
        ("verb=ListRecords&resumptionToken=", "resumptionToken=&verb=ListRecords"),
        ("", ""),
        ("verb=Identify&verb=Identify", None),
        ("verb=Identify&foo=bar", None),
        ("Verb=Identify", None),
        ("toString=1", None),
    ],
)
def test_arguments_are_sorted_where_they_are_the_protocol_s(query: str, sent: str | None) -> None:
    """None: the request stays as it is, object and all."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node here to run the function of CloudFront")
    code = Stack(WHOLE, **FULL).resources("AWS::CloudFront::Function")["SortArguments"]
    given: dict[str, Any] = {}
    for name, value in (pair.split("=", 1) for pair in query.split("&") if pair):
        if name in given:  # as CloudFront's event tells of an argument that is there again
            given[name].setdefault("multiValue", [{"value": given[name]["value"]}])
            given[name]["multiValue"].append({"value": value})
        else:
            given[name] = {"value": value}
    event = json.dumps({"request": {"method": "GET", "uri": "/oai", "querystring": given}})
    program = f"{code['FunctionCode']}\nconsole.log(JSON.stringify(handler({event})));"
    done = subprocess.run([node, "-e", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["querystring"] == (given if sent is None else sent)


# The build


@pytest.mark.parametrize("architecture", MACHINES)
def test_the_functions_are_built(architecture: str, tmp_path: Path) -> None:
    target = built(tmp_path, architecture)
    for name in ("OaiFunction", "ContentFunction", "PublishFunction", "FilesetFunction"):
        files = [path for path in function(target, name).rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files) / 1e6
        print(f"{name} for {architecture}: {size:.1f} MB unpacked")
        assert size < SIZES[name, architecture]
        assert not [path for path in files if {"tests", "include"} & set(path.parts)]
        libraries = [path for path in files if path.suffix == ".so"]
        assert libraries
        assert {path.read_bytes()[18] for path in libraries} == {MACHINES[architecture]}
        for source in (path for path in files if path.suffix == ".py"):
            compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc"
            # 1: named by a hash of the source that nobody looks at (PEP 552)
            assert compiled.read_bytes()[4:8] == b"\x01\x00\x00\x00", source
    for name in ("PublishFunction", "FilesetFunction"):
        assert (
            function(target, name) / "builder" / "kinds" / "captures" / "revisits.sql"
        ).is_file()


def test_what_is_packed_is_what_serves_and_nothing_else(artefact: Path) -> None:
    found = {path.name.partition("-")[0].partition(".")[0] for path in artefact.iterdir()}
    packages = {"apig_wsgi", "duckdb", "_duckdb", "jinja2", "markupsafe", "msgspec", "obstore"}
    packages |= {"zstandard"}
    assert found - {"sheaf_archive"} == {"functions", "templates", *packages}
