"""What `sam deploy --guided` asks, and what `sam deploy` does by the defaults of samconfig.toml."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aws.build import ARCHITECTURE, ROOT, sam
from tests.aws.cloud import Cloud, running
from tests.template import TEMPLATE, load

QUESTIONS = 13


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with running(tmp_path / "home") as cloud:
        yield cloud


def test_guided_asks_a_dozen_questions_of_the_template_and_deploys_by_their_defaults(
    cloud: Cloud, artefacts: Path, tmp_path: Path
) -> None:
    """Return answers each; SAM asks for the name, the region, and six things of its own."""
    (tmp_path / "samconfig.toml").write_text("version = 0.1\n")
    done = sam(
        *("deploy", "--guided", "--template-file", artefacts / "template.yaml"),
        *("--config-file", tmp_path / "samconfig.toml"),
        folder=tmp_path,
        environment=cloud.environment(),
        answers="sheaf\n\n" + QUESTIONS * "\n" + "n\n\n\nn\n",
    )
    asked = re.findall(r"Parameter (\w+) \[", done.stdout)
    assert asked == list(load(TEMPLATE.read_text("utf-8"))["Parameters"])
    assert len(asked) <= QUESTIONS
    assert done.returncode == 0, done.stdout + done.stderr
    client = cloud.client("cloudformation")
    (stack,) = client.describe_stacks(StackName="sheaf")["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE"


def test_the_defaults_deploy_after_one_yes(cloud: Cloud, artefacts: Path, tmp_path: Path) -> None:
    """Those of samconfig.toml, where an account lets ten functions run and reserves none."""
    done = sam(
        *("deploy", "--template-file", artefacts / "template.yaml"),
        *("--config-file", ROOT / "samconfig.toml"),
        *("--parameter-overrides", f"Architecture={ARCHITECTURE}"),
        folder=tmp_path,
        environment=cloud.environment(),
        answers="y\n",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = cloud.client("lambda").list_functions()["Functions"]
    assert {row["FunctionName"].split("-")[1] for row in names} == {
        "OaiFunction",
        "PublishFunction",
    }
