"""pywb as a client of /cdx: a collection of its own whose index is a remote one."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.functions.content.test_clients import base as base

ROOT = Path(__file__).parents[3]
PYWB = ROOT / ".venv-pywb" / "bin" / "python"


@pytest.mark.skipif(not PYWB.exists(), reason="pywb is not installed: `make clients` installs it")
@pytest.mark.parametrize(
    "index", ["cdx+BASE/cdx", "cdx+BASE/cdx/outback", "xmlquery+BASE/cdx/outback"]
)
@pytest.mark.parametrize(("closest", "years"), [("20090201000000", ["2009"]), ("", ["2005"])])
def test_pywb_finds_the_nearest(base: str, index: str, closest: str, years: list[str]) -> None:
    source = index.replace("BASE", base)
    done = subprocess.run(
        [PYWB, Path(__file__).with_name("with_pywb.py"), source, "http://b.org/", closest],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["timestamp"][:4] for one in found][:1] == years
    assert len(found) == 10
