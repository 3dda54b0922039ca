"""A cloud on this machine: CloudFormation, Lambda, API Gateway, IAM and S3, policies enforced.

ministack runs the functions of a stack each in a process of its own, with the credentials of the
function's role, and holds every request against the policies of who signed it.
"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tests.aws.build import ARCHITECTURE, ROOT, TEMPLATE, sam
from tests.aws.runtime import BARE, started
from tests.listening import free_port
from tests.template import load, packed

PYTHON = Path(sys.prefix) / "ministack" / "bin" / "python"
STACK = os.environ.get("PROVE_STACK", "sheaf-proof")
"""Named by infra/prove-account.sh, where the account is a real one, or what AWS_ENDPOINT_URL is."""
IS_ACCOUNT = "PROVE_STACK" in os.environ
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""Those of the account's root, who may do everything."""

EMULATOR = ROOT / "infra" / "emulator.py"
_ENVIRONMENT = f"""#!/bin/sh
TMPDIR=$(mktemp -d) exec {BARE} "$@"
"""
"""An environment of Lambda: nothing but what was packed, and its own folder for temporary files."""


@dataclass
class Cloud:
    """What AWS or its emulator is reached by, and by whom; an empty URL is AWS itself."""

    url: str
    folder: Path
    keys: Mapping[str, str] = field(default_factory=lambda: {} if IS_ACCOUNT else KEYS)

    @property
    def host(self) -> str:
        """Host and port."""
        return self.url.partition("://")[2]

    @property
    def region(self) -> str:
        """The region."""
        return (boto3.Session().region_name if IS_ACCOUNT else None) or "us-east-1"

    def client(self, service: str, keys: Mapping[str, str] | None = None) -> Any:
        """Return a client of AWS's own SDK, for the keys of somebody else or for one's own."""
        keys = (self.keys if IS_ACCOUNT else KEYS) if keys is None else keys
        return boto3.client(
            service,
            endpoint_url=self.url or None,
            aws_access_key_id=keys.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=keys.get("AWS_SECRET_ACCESS_KEY"),
            region_name=self.region,
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    def environment(self, keys: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the variables by which a process reaches it."""
        if IS_ACCOUNT:
            own = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
            for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE") if keys else ():
                own.pop(name, None)
            return {**own, "AWS_DEFAULT_REGION": self.region, **(keys or {})}
        return {**(KEYS if keys is None else keys), "AWS_ENDPOINT_URL": self.url}

    def sam(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run the SAM CLI against it."""
        return sam(*arguments, folder=self.folder, environment=self.environment(self.keys))

    def deploy(self, artefacts: Path, **parameters: str) -> "Stack":
        """Deploy what was built, as a new stack or as an update of it."""
        given = packed(
            load(TEMPLATE.read_text("utf-8")),
            {
                "Architecture": ARCHITECTURE,
                **({"S3Endpoint": self.url} if self.url else {}),
                **parameters,
            },
        )
        done = self.sam(
            "deploy",
            "--template-file",
            artefacts / "template.yaml",
            "--stack-name",
            STACK,
            "--resolve-s3",
            "--capabilities",
            "CAPABILITY_IAM",
            "--no-confirm-changeset",
            "--no-fail-on-empty-changeset",
            "--no-progressbar",
            "--parameter-overrides",
            *(f'{name}="{value}"' for name, value in given.items()),  # it may have blanks
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return self.stack()

    def delete(self) -> None:
        """Delete the stack, as `sam delete` does, which refuses the URLs of an emulator."""
        client = self.client("cloudformation", self.keys)
        client.delete_stack(StackName=STACK)
        client.get_waiter("stack_delete_complete").wait(StackName=STACK)

    def stack(self) -> "Stack":
        """Return the stack that is deployed."""
        described = self.client("cloudformation").describe_stacks(StackName=STACK)
        (found,) = described["Stacks"]
        outputs = {one["OutputKey"]: one["OutputValue"] for one in found["Outputs"]}
        return Stack(found["StackStatus"], outputs, dict(self._resources(STACK)))

    def _resources(self, stack: str) -> Iterator[tuple[str, str]]:
        described = self.client("cloudformation").describe_stack_resources(StackName=stack)
        for row in described["StackResources"]:
            yield row["LogicalResourceId"], row["PhysicalResourceId"]
            if row["ResourceType"] == "AWS::CloudFormation::Stack":
                yield from self._resources(row["PhysicalResourceId"])


@dataclass(frozen=True)
class Stack:
    """A stack: its state, its outputs, and the ids of its and its parts' resources by name."""

    status: str
    outputs: Mapping[str, str]
    resources: Mapping[str, str]


@contextmanager
def running(folder: Path, concurrency: int | None = None) -> Iterator[Cloud]:
    """Run the emulator, with nothing in it; `concurrency` is how many functions may run at once.

    In an account's proof, give that account, of which infra/prove-account.sh deletes what is made.
    """
    if IS_ACCOUNT:
        folder.mkdir()
        yield Cloud(os.environ.get("AWS_ENDPOINT_URL", ""), folder)
        return
    port = free_port()
    scratch = folder / "tmp"
    scratch.mkdir(parents=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SHEAF_"))}
    environment = {
        **kept,
        "GATEWAY_PORT": str(port),
        "STATE_DIR": str(folder / "state"),
        "TMPDIR": str(scratch),
        "MINISTACK_HOST": "localhost",
        **({"LAMBDA_ACCOUNT_CONCURRENCY": str(concurrency)} if concurrency else {}),
    }
    url = f"http://127.0.0.1:{port}"
    log = folder / "log"
    starter = folder / "environment"
    starter.write_text(_ENVIRONMENT)
    starter.chmod(0o755)
    health = f"{url}/_ministack/health"
    command = [PYTHON, EMULATOR, starter]
    with started(command, environment, folder, log, lambda: _read(health)):
        yield Cloud(url, folder)


def _read(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=2) as reply:
        return json.loads(reply.read())
