"""Whoever adds a member of a family adds one folder and one row: the rest of Sheaf knows it.

The tree of Sheaf is copied, a toy is added to it, and the commands are run there.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import warc

ROOT = Path(__file__).parents[1]
EXPORT_ROW = '''"""The toy."""

from builder.exports.export_row import Export

TOY = Export("toy", __name__, "Write the toy.", ("sheaf export toy out.txt",))
'''
EXPORT = '''"""`sheaf export toy`."""


def add(parser):
    parser.add_argument("file", metavar="FILE", help="file to create")


def run(context):
    """Write the toy."""
    with open(context.arguments.file, "x") as out:
        out.write(context.configuration["repository.name"])
    context.result("toy written", {"file": context.arguments.file})
    return 0
'''
OUTPUT = '''"""A toy: the number of the newest snapshot, and a number for each that was retired."""

from builder.outputs.output import Output, OutputUpdate
from builder.snapshot import recovery
from builder.store.copier import read_document
from builder.store.findings import Finding

KEY = "toy/newest"


def update(store, runtime):
    pointer, _ = recovery.current(store)
    store.replace(KEY, str(pointer.newest().snapshot).encode(), store.tag(KEY))


class Toy(Output):
    copied = ("toy/",)

    def open(self, configuration):
        return OutputUpdate(update, (KEY,))

    def retire(self, store, runtime, *, anew):
        store.create(f"toy/{'purged' if anew else 'expired'}", b"")
        return 1

    def verify(self, audit):
        right = str(audit.pointer.newest().snapshot).encode()
        if audit.store.tag(KEY) and audit.store.read(KEY) != right:
            return [Finding("dump-altered", KEY, "it is not the newest snapshot")]
        return []

    def copy(self, source, copier, runtime, snapshots):
        copier.copy([[read_document(source, KEY, replaced=True)]])
'''


SOURCE_ROW = '''"""The toy."""

from builder.sources.source import Source

TOY = Source(
    __name__,
    "files of toys",
    {"--toy-sets SPEC...": "set of each capture of a toy"},
    noun=("toy",),
    count=lambda run: sum(source.captures for source in run.sources if source.format == "toy"),
    key="toys",
)
'''
SOURCE = '''"""Files that begin with a line `toy`; further lines are URLs, each of a capture."""

from functools import partial
from pathlib import Path

from builder.intake import intake
from builder.intake.captures import Capture
from builder.intake.rows import IntakeWriter
from builder.sources.source import Claim, SourceReader, SourceReport, find_home
from builder.store import workdir
from functions.snapshot import oai_name, surt


def claim(context, inputs):
    own = [source for source in inputs if Path(source.name).read_bytes()[:4] == b"toy\\n"]
    rest = [source for source in inputs if source not in own]
    return Claim(rest, partial(_read, context, own) if own else None)


def _read(context, inputs):
    sets = tuple(context.arguments.toy_sets)
    with workdir.open_workdir(workdir.folder_of(find_home(context), None)) as work:
        with work.scratch() as scratch:
            rows = IntakeWriter(scratch, "000000")
            for source in inputs:
                for url in Path(source.name).read_bytes().split()[1:]:
                    name = oai_name.capture_identity(url, None, None, None)
                    rows.capture(Capture(name, url.decode(), surt.of(url)), sets)
            rows.close()
            file = inputs[0].name
            source = intake.IntakeSource(file, "", file, "toy", 1, rows.captured, 0, 0, {}, {})
            run = intake.IntakeRun(intake.run_name(context.now()), (source,))
            intake.commit(context.store, run, scratch)
        work.remove()
    return SourceReport(f"{rows.captured} of a toy", {"toys": rows.captured})


READER = SourceReader(claim)
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of Sheaf."""
    for name in ("builder", "functions", "templates"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


def add_row(registry: Path, line: str, row: str) -> None:
    """Import a member in a registry, and name it last in the tuple."""
    text = registry.read_text()
    assert text.count(')\n"""The') == 1
    registry.write_text(line + text.replace(')\n"""The', f', {row})\n"""The'))


def sheaf(tree: Path, *arguments: object, code: int = 0) -> str:
    command = [sys.executable, "-m", "builder", *map(str, arguments)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_an_export_and_an_output_are_added_by_a_folder_and_a_row(tree: Path) -> None:
    builder = tree / "builder"
    for folder, files in {
        "exports/toy": {"__init__.py": EXPORT_ROW, "export.py": EXPORT},
        "outputs/toy": {"__init__.py": "", "output.py": OUTPUT},
    }.items():
        (builder / folder).mkdir()
        for name, text in files.items():
            (builder / folder / name).write_text(text)
    add_row(builder / "exports" / "__init__.py", "from builder.exports.toy import TOY\n", "TOY")
    add_row(
        builder / "outputs" / "__init__.py",
        "from builder.outputs.toy.output import Toy\n",
        "Toy()",
    )
    sheaf(tree, "init", "--name", "A toy", "--namespace", "archive.example.org")
    assert "Write the toy." in sheaf(tree, "export", "--help")
    assert "sheaf export toy out.txt" in sheaf(tree, "export", "toy", "--help")
    assert sheaf(tree, "export", "toy", "out.txt") == "toy written\n"
    assert (tree / "out.txt").read_text() == "A toy"

    store = tree / "store"
    pages = {f"http://www.example.cz/{n}": b"<title>Page</title>" for n in range(2)}
    sheaf(tree, "ingest", warc(tree / "a.warc.gz", pages))
    sheaf(tree, "publish")
    assert (store / "toy" / "newest").read_text() == "1"
    (store / "toy" / "newest").write_text("7")
    findings = json.loads(sheaf(tree, "verify", "--json", code=1))["findings"]
    assert [finding["object"] for finding in findings] == ["toy/newest"]
    page = ("withdraw", "--url-prefix", "http://www.example.cz/1", "--reason", "a request")
    sheaf(tree, *page, "--purge")
    assert (store / "toy" / "newest").read_text() == "2"
    assert (store / "toy" / "purged").exists()
    sheaf(tree, "expire", "--keep", "1")
    assert (store / "toy" / "expired").exists()
    sheaf(tree, "copy", "copied")
    assert (tree / "copied" / "toy" / "newest").read_text() == "2"
    assert json.loads(sheaf(tree, "verify", "--json"))["findings"] == []
    (store / "toy" / "newest").unlink()
    findings = json.loads(sheaf(tree, "verify", "--json", code=1))["findings"]
    assert [finding["object"] for finding in findings] == ["toy/newest"]


def test_a_source_is_added_by_a_folder_and_a_row(tree: Path) -> None:
    """It is asked before the web archives, which take whatever is left."""
    sources = tree / "builder" / "sources"
    (sources / "toy").mkdir()
    (sources / "toy" / "__init__.py").write_text(SOURCE_ROW)
    (sources / "toy" / "source.py").write_text(SOURCE)
    add_row(sources / "__init__.py", "from builder.sources.toy import TOY\n", "TOY")
    sheaf(tree, "init", "--name", "A toy", "--namespace", "archive.example.org")
    help_ = sheaf(tree, "ingest", "--help")
    assert "files of toys" in help_
    assert "--toy-sets SPEC" in help_
    (tree / "toy").write_text("toy\nhttp://a.cz/1\nhttp://a.cz/2\n")
    archive = warc(tree / "a.warc.gz", {"http://www.example.cz/": b"<title>Page</title>"})
    done = sheaf(tree, "ingest", "toy", archive, "--toy-sets", "domain:cz:a").splitlines()
    assert done[:2] == ["2 of a toy", "1 capture from 1 file, ready to publish"]
    assert "3 captures and 2 toys in 2 runs, not published yet" in sheaf(tree, "status")
    waiting = json.loads(sheaf(tree, "status", "--json"))["intake"]
    assert sorted(run["toys"] for run in waiting) == [0, 2]
    assert "3 new" in sheaf(tree, "publish")
    listed = "SELECT url FROM records WHERE list_contains(sets, 'domain:cz:a') ORDER BY url"
    assert sheaf(tree, "query", listed, "--json").splitlines() == [
        '{"url": "http://a.cz/1"}',
        '{"url": "http://a.cz/2"}',
    ]
    assert json.loads(sheaf(tree, "verify", "--json"))["findings"] == []
