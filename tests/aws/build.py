"""The artefacts, built as they are deployed, for the processor of this machine."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "infra" / "template.yaml"
ARCHITECTURE = {"x86_64": "x86_64", "aarch64": "arm64"}[platform.machine()]


def sam(
    *arguments: object,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    answers: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run the SAM CLI, which tells nobody, keeps its files in `folder` and asks for `answers`."""
    tools = Path(sys.prefix) / "bin"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SHEAF_", "SAM_"))}
    if "AWS_CA_BUNDLE" in os.environ:
        kept["AWS_CA_BUNDLE"] = os.environ["AWS_CA_BUNDLE"]
    return subprocess.run(
        [tools / "sam", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        input=answers,
        env={
            **kept,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",  # python3.13 is there
            "SAM_CLI_TELEMETRY": "0",
            "__SAM_CLI_APP_DIR": str(folder),
            "AWS_DEFAULT_REGION": "us-east-1",
            **(environment or {}),
        },
    )


def built(folder: Path, architecture: str = ARCHITECTURE) -> Path:
    """Build all functions; return the folder in which they and their template are."""
    target = folder / "build"
    done = sam(
        "build",
        "--template-file",
        TEMPLATE,
        "--build-dir",
        target,
        "--parameter-overrides",
        f"Architecture={architecture}",
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    return target


def function(artefacts: Path, name: str) -> Path:
    """Return the folder of a function among what was built: the core's, or one of a part."""
    (folder,) = [*artefacts.glob(name), *artefacts.glob(f"*Part/{name}")]
    return folder
