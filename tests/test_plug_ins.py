"""Whoever adds a member of a family adds one folder and one row: the rest of Sheaf knows it.

The tree of Sheaf is copied, toys are added to it, and the commands are run there.
"""

import json
import os
import shutil
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import pytest

from tests.e2e.conftest import warc
from tests.functions.oai.gateways import http

ROOT = Path(__file__).parents[1]
EXPORT_ROW = '''"""The toy."""

from builder.exports.export_row import Export

TOY = Export("toy", "Write the toy.", ("sheaf export toy out.txt",))
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


TOY_OUTPUT = Toy()
'''
KIND = '''"""A toy: a new item in each publish."""

from builder.kinds.kind import Kind, KindCounts

NEW = """INSERT INTO prepared_versions BY NAME
SELECT 'oai:archive.example.org:toy,' || $number AS identifier, 'toy' AS kind, false AS deleted,
    ['type:toy'] AS sets, []::VARCHAR[] AS left_sets,
    json_object('name', 'Kite ' || $number)::VARCHAR AS document"""


def gather(change):
    change.connection.execute(NEW, {"number": change.base.before.snapshot + 1})
    return KindCounts(new=1)


TOYS = Kind(("toy",), gather=gather)
'''
ITEM_KIND = '''"""A toy: a thing with a name."""

from functions.kinds.kind import ItemKind
from functions.snapshot.schema import Column

TOY = ItemKind("toy", (Column("name", "VARCHAR", "its name", "a ball"),), type="Product")
'''
CROSSWALK = """<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" \
xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>{{ name }}</dc:title>
</oai_dc:dc>
"""
ANSWER = """
import json, sys
from functions.site.function import handler
print(handler(json.loads(sys.argv[1]))["body"])
"""
SETTINGS = """repository.name = "A toy"
repository.namespace = "archive.example.org"
search.words = true
"""


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


def add_row(registry: Path, line: str) -> None:
    """Import a member in a registry, and name it last in the tuple."""
    text, row = registry.read_text(), line.split()[-1]
    rows, end = text.split(')\n"""The')
    registry.write_text(f'{line}{rows.rstrip().rstrip(",")}, {row})\n"""The{end}')


def sheaf(tree: Path, *arguments: object, code: int = 0) -> str:
    command = [sys.executable, "-m", "builder", *map(str, arguments)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout


def findings(tree: Path, *options: str, code: int = 0) -> list[str]:
    """Return the objects that a check finds wrong."""
    document = json.loads(sheaf(tree, "verify", "--json", *options, code=code))
    return [finding["object"] for finding in document["findings"]]


def ask(tree: Path, path: str, query: str = "") -> str:
    """Return the XML or HTML of an answer."""
    done = subprocess.run(
        [sys.executable, "-c", ANSWER, json.dumps(http(query, path=path))],
        cwd=tree,
        env={**os.environ, "SHEAF_STORE_URI": str(tree / "store")},
        capture_output=True,
        text=True,
    )
    return b64decode(done.stdout.splitlines()[-1]).decode()


def test_a_member_is_added_by_a_folder_and_a_row(tree: Path) -> None:
    for path, text in {
        "builder/exports/toy/__init__.py": EXPORT_ROW,
        "builder/exports/toy/export.py": EXPORT,
        "builder/outputs/toy/output.py": OUTPUT,
        "builder/kinds/toys/kind.py": KIND,
        "functions/kinds/toys/__init__.py": ITEM_KIND,
        "templates/crosswalks/toy-oai_dc.xml": CROSSWALK,
        "sheaf.toml": SETTINGS,
    }.items():
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).write_text(text)
    for registry, line in {
        "builder/exports": "from builder.exports.toy import TOY\n",
        "builder/outputs": "from builder.outputs.toy.output import TOY_OUTPUT\n",
        "builder/kinds": "from builder.kinds.toys.kind import TOYS\n",
        "functions/kinds": "from functions.kinds.toys import TOY\n",
    }.items():
        add_row(tree / registry / "__init__.py", line)
    formats, row = tree / "templates" / "formats.toml", 'capture = "capture-oai_dc.xml"\n'
    formats.write_text(formats.read_text().replace(row, row + 'toy = "toy-oai_dc.xml"\n', 1))
    assert "Write the toy." in sheaf(tree, "export", "--help")
    assert sheaf(tree, "export", "toy", "out.txt") == "toy written\n"
    assert (tree / "out.txt").read_text() == "A toy"

    newest = tree / "store" / "toy" / "newest"
    for number in (1, 2):
        page = {f"http://www.example.cz/{number}": b"<title>Page</title>"}
        sheaf(tree, "ingest", warc(tree / f"{number}.warc.gz", page))
        sheaf(tree, "publish")
        assert newest.read_text() == str(number)
    assert json.loads(sheaf(tree, "status", "--json"))["snapshot"]["kinds"]["toy"] == 2
    name, oai_dc = "oai:archive.example.org:toy,", "metadataPrefix=oai_dc"
    request = f"verb=GetRecord&{oai_dc}&identifier={name}2"
    assert "<dc:title>Kite 2</dc:title>" in ask(tree, "/oai", request)
    assert ask(tree, "/oai", f"verb=ListRecords&{oai_dc}").count(name) == 2
    assert "<h1>Kite 2</h1>" in ask(tree, f"/record/{name}2")
    assert f"{name}2" in ask(tree, "/search", "q=kite&kind=toy")

    newest.write_text("7")
    assert findings(tree, code=1) == ["toy/newest"]
    sheaf(tree, "withdraw", "--identifier", f"{name}2", "--reason", "a request", "--purge")
    assert newest.read_text() == "3"
    assert (newest.parent / "purged").exists()
    assert 'status="deleted"' in ask(tree, "/oai", request)
    assert f"{name}2" not in ask(tree, "/search", "q=kite")
    sheaf(tree, "expire", "--keep", "1")
    assert (newest.parent / "expired").exists()
    sheaf(tree, "copy", "copied")
    assert (tree / "copied" / "toy" / "newest").read_text() == "3"
    assert findings(tree) == findings(tree, "--store", "copied") == []
    newest.unlink()
    assert findings(tree, code=1) == ["toy/newest"]


def test_a_source_is_added_by_a_folder_and_a_row(tree: Path) -> None:
    """It is asked before the web archives, which take whatever is left."""
    sources = tree / "builder" / "sources"
    (sources / "toy").mkdir()
    (sources / "toy" / "__init__.py").write_text(SOURCE_ROW)
    (sources / "toy" / "source.py").write_text(SOURCE)
    add_row(sources / "__init__.py", "from builder.sources.toy import TOY\n")
    sheaf(tree, "init", "--name", "A toy", "--namespace", "archive.example.org")
    help_ = sheaf(tree, "ingest", "--help")
    assert all(text in help_ for text in ("files of toys", "--toy-sets SPEC"))
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
    assert findings(tree) == []
