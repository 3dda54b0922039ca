"""Two visits of misbehaving repositories, which change in between: `sheaf check --compare`."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import Answer, Call, Provider, items
from tests.e2e.conftest import SHARED, sheaf

FOLDER = SHARED / "reports" / "harvest"
PACE = "[http]\nhost_seconds = 0\n"
SCENARIOS: dict[str, tuple[str, set[str]]] = {
    # scenario: what is switched between the visits, and the checks that only both show together
    "vanish": ("later=1", {"C02"}),
    "fmtdel": ("later=1", {"C03"}),
    "lag": ("indexed=1", {"C04"}),
    "mv_old": ("mv_new", {"C06"}),
    "renamed": ("later=1", {"C07"}),
    "backdated": ("later=1", {"C08"}),
    "futuredate": ("fixed=1", {"C09"}),
    "localtime": ("fixed=1", {"C09"}),
    "schemachange": ("later=1", {"C12"}),
    "restricted": ("later=1", {"C14"}),
    "midlist_end": ("ok=1", set()),
}


@pytest.fixture(scope="module")
def misbehaving() -> Iterator[str]:
    if not (FOLDER / "fake.py").exists():
        pytest.skip(f"two visits are NOT proved here: {FOLDER} is not there")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "fake.py", str(port), "scen1.py"]
    with subprocess.Popen(command, cwd=FOLDER, stderr=subprocess.DEVNULL) as process:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
        process.terminate()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_only_two_visits_show_is_named(
    scenario: str, misbehaving: str, tmp_path: Path
) -> None:
    switch, numbers = SCENARIOS[scenario]
    config, old, page = (tmp_path / name for name in ("sheaf.toml", "old.json", "card.html"))
    config.write_text(PACE)
    url = f"{misbehaving}/s/{scenario}/oai"
    first = sheaf("check", url, "--json", "--config", config)
    old.write_text(first.out)
    if "=" in switch:
        urllib.request.urlopen(f"{misbehaving}/ctl/{scenario}?{switch}").close()
    else:
        url = f"{misbehaving}/s/{switch}/oai"
    again = ("check", url, "--json", "--config", config, "--compare", old, "--html", page)
    report = sheaf(*again).json
    failed = {row["number"] for row in report["checks"] if row["state"] == "failed"}
    assert {number for number in failed if number[0] == "C"} == numbers
    assert all(number in page.read_text("utf-8") for number in numbers)
    better = {row["number"] for row in report["comparison"]["better"]}
    assert (better >= {"L02"}) is (scenario == "midlist_end"), better


SECRET = "Bearer hunter2-hunter2"


def _repeat_key(provider: Provider, call: Call, answer: Answer) -> Answer:
    """Answer with what the client sent, as pages of errors do."""
    name = b"<repositoryName>"
    return replace(answer, body=answer.body.replace(name, name + SECRET.encode()))


def test_a_second_visit_asks_for_the_same_records_and_no_secret_is_told(tmp_path: Path) -> None:
    """Of a list longer than the sample, some were seen only before: they are asked for alone."""
    config, old, page = (tmp_path / name for name in ("sheaf.toml", "old.json", "card.html"))
    config.write_text(PACE)
    with serving(items(60)) as provider:
        provider.answers.append(_repeat_key)
        line = ("check", provider.url, "--sample", 7, "--config", config, "--html", page)
        line = (*line, "--header", f"Authorization: {SECRET}")
        old.write_text(sheaf(*line, "--json").out)
        sampled = [row["identifier"] for row in json.loads(old.read_text())["sample"]]
        for identifier in sampled[:2]:
            del provider.items[identifier]
        text = sheaf(*line, "--compare", old).out
    assert "C01" in text
    words = " ".join(text.split())
    assert all(f"[{identifier}]" in words for identifier in sampled[:2])
    for output in (old.read_text(), text, page.read_text("utf-8")):
        assert "hunter2" not in output
    assert "Authorization: ..." in page.read_text("utf-8")
