"""The proofs say what they skip; they themselves are in tests/aws and tests/pages."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "infra" / "prove.sh"


def run(path: Path, script: Path = SCRIPT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it where nothing can be had but what lies in `path`."""
    bash = shutil.which("bash")
    assert bash is not None
    return subprocess.run(
        [bash, str(script)],
        env={"PATH": str(path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Give a folder with the two tools of the system that the script cannot do without."""
    for name in ("dirname", "awk"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    return tmp_path


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (SCRIPT, r"SKIPPED: the deployment to AWS is NOT proved here .*there is no Python 3\.13"),
        (SCRIPT.with_name("prove-hosts.sh"), "SKIPPED: the routers are NOT proved here"),
        (SCRIPT.with_name("prove-places.sh"), "SKIPPED: other places are NOT proved here"),
        (SCRIPT.with_name("prove-pages.sh"), "SKIPPED: the pages are NOT proved in Chromium here"),
    ],
)
def test_what_cannot_be_had_is_skipped_loudly(bare: Path, script: Path, said: str) -> None:
    (bare / "python3.13").write_text("#!/bin/sh\nexit 127\n")  # as the shims of pyenv are
    (bare / "python3.13").chmod(0o755)
    done = run(bare, script)
    assert done.returncode == 0, done.stderr
    assert re.search(said, done.stderr)


def test_a_python_that_is_another_is_refused(bare: Path) -> None:
    done = run(bare, PYTHON313="/bin/false")
    assert done.returncode == 2
    assert "PYTHON313=/bin/false is no Python 3.13" in done.stderr


def test_the_light_suite_leaves_the_proofs_out() -> None:
    ignored = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'norecursedirs = ["aws"' in ignored
    assert (ROOT / "tests" / "aws").is_dir()
    assert "infra/prove.sh" in (ROOT / "Makefile").read_text("utf-8")
    for name in ("all", "aws", "engines", "pages", "tables", "protocol"):
        assert f"make prove-{name}" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_the_demo_runs_before_the_tests_in_the_same_clone() -> None:
    """So a test that minds what the demo leaves behind fails where it is seen."""
    lines = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    (demo,) = (n for n, line in enumerate(lines) if line.startswith("make demo ONCE=1"))
    assert demo < lines.index("make test") < lines.index("make prove-aws")
