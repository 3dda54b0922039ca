"""Each file has its own state: what failed is asked for again, and nothing else."""

import json
from dataclasses import dataclass

import pytest

from tests.builder.sources.datasets.command import Command
from tests.builder.sources.datasets.deposits import ZENODO, content, deposit, doi
from tests.builder.sources.datasets.platform import STRATEGIES
from tests.builder.sources.datasets.server import Answer, Exchange, html, served, status
from tests.clock import CLOCK

pytestmark = pytest.mark.shared(2)

MANY, RUNS = 50, 4
BODIES = {f"{n % 7}/{n}.bin": bytes([n]) * (100 + n) for n in range(MANY)}
STATES = ("file-forbidden", "file-404", "mismatch-size", "mismatch-md5", "truncated")


@dataclass
class Refusing:
    """A platform that gives each file from a run of its own on; until then it is faulty."""

    run: int = 0

    def opens(self, number: int) -> int:
        """Return the run from which a file is given."""
        return 1 + number * 3 % RUNS

    def answer(self, number: int, body: bytes) -> Answer:
        faults = (
            status(403),
            status(404),
            html("<form>Who is there?</form>"),
            served(body, wrong=3),
            served(body, cut=0),
        )

        def answer(exchange: Exchange) -> None:
            fault = self.run < self.opens(number)
            (faults[number % len(faults)] if fault else served(body))(exchange)

        return answer

    def states(self) -> dict[str, str]:
        """Return the state that each file must have now."""
        return {
            path: "verified" if self.run >= self.opens(number) else STATES[number % len(STATES)]
            for number, path in enumerate(BODIES)
        }


@pytest.mark.sampled(1)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_file_is_fetched_once_however_often_others_are_refused(
    command: Command, strategy: str
) -> None:
    command.configure(fileset__strategy=STRATEGIES[strategy])
    platform = Refusing()
    faulty = {path: platform.answer(n, body) for n, (path, body) in enumerate(BODIES.items())}
    deposit(command.server, 11, BODIES, answers=faulty)
    name = doi(command.server, 11)
    (first,) = command.results(name)
    assert first["status"] == STATES[0]
    for run in range(1, RUNS + 1):
        platform.run = run
        CLOCK.sleep(60)
        if run == 3:  # what is missing is archived as the rest is, whatever is configured now
            command.configure(fileset__strategy='"web"' if strategy == "s3-fileset" else '"s3"')
        command.server.forget()
        (result,) = command.results(*((name,) if run % 2 else ("--retry",)))
        states = platform.states()
        assert {file["path"]: file["status"] for file in result["manifest"]} == states
        assert result["status"] == ("success" if run == RUNS else "success-partial")
        for number, path in enumerate(BODIES):
            asked = len(command.server.asked(content(11, path)))
            if platform.opens(number) <= run:
                assert asked == (platform.opens(number) == run)
        command("publish")
        lacking = {path for path, state in states.items() if state != "verified"}
        out, _ = command("query", "SELECT path FROM files ORDER BY path")
        assert set(out.splitlines()[1:]) == BODIES.keys() - lacking
    command("verify")
    command.server.forget()
    assert command.results("--retry") == []
    (again,) = command.results(name)
    assert again["status"] == "success-existing"
    assert command.server.asked(f"{ZENODO}/api/records/11/files/") == []
    command("restore", name, str(command.folder / "out"))
    for path, body in BODIES.items():
        assert (command.folder / "out" / path).read_bytes() == body


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_files_that_are_listed_later_join_the_others(command: Command, strategy: str) -> None:
    command.configure(fileset__strategy=STRATEGIES[strategy])
    deposit(command.server, 11, {"a.csv": b"1"})
    command.results(doi(command.server, 11))
    command.server.forget()
    CLOCK.sleep(60)
    deposit(command.server, 11, {"a.csv": b"1", "b.csv": b"22", "c.csv": b"333"})
    (result,) = command.results(doi(command.server, 11))
    assert (result["status"], result["file_count"]) == ("success", 3)
    assert command.server.asked(content(11, "a.csv")) == []
    command("publish")
    command("verify")
    command("restore", "10.5281/zenodo.11", str(command.folder / "out"))
    assert (command.folder / "out" / "a.csv").read_bytes() == b"1"
    assert (command.folder / "out" / "c.csv").read_bytes() == b"333"


def test_an_export_says_what_is_not_archived(command: Command) -> None:
    files = {"a.csv": b"1", "b.csv": b"22"}
    deposit(command.server, 11, files, answers={"b.csv": status(404)})
    command.results(doi(command.server, 11))
    command("publish")
    _, err = command("export", "rocrate", str(command.folder / "out"))
    assert "1 file of a dataset is not archived; ro-crate-metadata.json names" in err
    (crate,) = (command.folder / "out").rglob("ro-crate-metadata.json")
    assert "that are not archived, and so not here: b.csv" in crate.read_text("utf-8")
    record = json.loads((crate.parent / "metadata" / "fileset.json").read_bytes())
    states = {file["path"]: file["status"] for file in record["archived"]["manifest"]}
    assert states == {"a.csv": "verified", "b.csv": "file-404"}
    assert record["archived"]["manifest"][1]["extra"] == {"problem": "HTTP status 404"}
    assert list((crate.parent / "metadata").glob("platform-*"))


def test_the_warc_of_a_published_dataset_is_no_remainder(command: Command) -> None:
    command.configure(fileset__strategy=STRATEGIES["web-fileset"])
    deposit(command.server, 11, {"a.csv": b"1"})
    command.results(doi(command.server, 11))
    command("publish")
    (record,) = (command.folder / "store").rglob("fileset.json")
    record.unlink()
    out, _ = command("verify", code=1)
    assert "the newest snapshot lists it with a.csv, but no record" in out
    assert "warc.gz: no record of a dataset names it" not in out
