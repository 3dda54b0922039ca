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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tests.aws.build import ARCHITECTURE, sam
from tests.aws.runtime import BARE, free_port, started

PYTHON = Path(sys.prefix) / "ministack" / "bin" / "python"
STACK = "sheaf-proof"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""Those of the account's root, who may do everything."""

_PROGRAM = """
import sys
from ministack.app import main
sys.executable = sys.argv.pop()  # of the functions
main()
"""
_ENVIRONMENT = f"""#!/bin/sh
TMPDIR=$(mktemp -d) exec {BARE} "$@"
"""
"""An environment of Lambda: nothing but what was packed, and its own folder for temporary files."""


@dataclass
class Cloud:
    """What the emulator is reached by."""

    url: str
    folder: Path

    @property
    def host(self) -> str:
        """Host and port."""
        return self.url.partition("://")[2]

    def client(self, service: str, keys: Mapping[str, str] = KEYS) -> Any:
        """Return a client of AWS's own SDK."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
            region_name="us-east-1",
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    def environment(self, keys: Mapping[str, str] = KEYS) -> dict[str, str]:
        """Return the variables by which a process reaches it."""
        return {**keys, "AWS_ENDPOINT_URL": self.url}

    def sam(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run the SAM CLI against it."""
        return sam(*arguments, folder=self.folder, environment=self.environment())

    def deploy(self, artefacts: Path, **parameters: str) -> "Stack":
        """Deploy what was built, as a new stack or as an update of it."""
        given = {"Architecture": ARCHITECTURE, "S3Endpoint": self.url, **parameters}
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

    def stack(self) -> "Stack":
        """Return the stack that is deployed."""
        described = self.client("cloudformation").describe_stacks(StackName=STACK)
        (found,) = described["Stacks"]
        outputs = {one["OutputKey"]: one["OutputValue"] for one in found["Outputs"]}
        resources = self.client("cloudformation").describe_stack_resources(StackName=STACK)
        ids = {
            one["LogicalResourceId"]: one["PhysicalResourceId"]
            for one in resources["StackResources"]
        }
        return Stack(found["StackStatus"], outputs, ids)


@dataclass(frozen=True)
class Stack:
    """A stack: its state, its outputs, and the ids of its resources by their names."""

    status: str
    outputs: Mapping[str, str]
    resources: Mapping[str, str]


@contextmanager
def running(folder: Path, concurrency: int | None = None) -> Iterator[Cloud]:
    """Run the emulator, with nothing in it; `concurrency` is how many functions may run at once."""
    port = free_port()
    scratch = folder / "tmp"
    scratch.mkdir(parents=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SHEAF_"))}
    environment = {
        **kept,
        "AUTH": "true",
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "LAMBDA_EXECUTOR": "local",
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
    command = [PYTHON, "-c", _PROGRAM, starter]
    with started(command, environment, folder, log, lambda: _read(health)):
        yield Cloud(url, folder)


def _read(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=2) as reply:
        return json.loads(reply.read())
