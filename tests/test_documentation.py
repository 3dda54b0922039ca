"""The documentation names what the program has."""

import re
from pathlib import Path

import pytest

from builder.commands.table import COMMANDS
from builder.filesets.status import STATUSES
from builder.harvest.row import ROW
from builder.http.outcomes import OUTCOMES
from builder.redif import fault as redif
from builder.restore import errors as rebuild
from builder.snapshot import views
from builder.sources.fault import CODES
from builder.sources.redif import diagnostic
from builder.store import findings as findings
from functions.config import keys
from functions.database import engine
from functions.snapshot import fileset, obi
from functions.snapshot.manifest import UNSTAMPED, Manifest, Sequence

ROOT = Path(__file__).parents[1]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def rows(name: str) -> set[str]:
    """Return what the first column of every table of a document holds, without back-quotes."""
    return set(re.findall(r"^\| `([^`]+)`", text(name), re.MULTILINE))


def test_every_key_of_the_configuration_is_described() -> None:
    assert rows("docs/configuration.md") == {key.name for key in keys.KEYS}


def test_every_fault_is_described() -> None:
    codes = set(CODES) | set(diagnostic.CODES) | set(redif.CODES)
    assert codes <= rows("docs/sources.md")


def test_every_outcome_of_gathering_is_described() -> None:
    assert rows("docs/gather.md") == set(OUTCOMES)


def test_every_code_of_a_restore_is_described() -> None:
    codes = rows("docs/restore.md") - {"escaped", "long-name", "long-path", "folder", "twin"}
    assert {code for code in codes if not code.startswith("--")} == set(rebuild.CODES)


def test_every_status_of_filesets_is_described() -> None:
    assert set(STATUSES) <= rows("docs/filesets.md")


def test_every_column_of_harvests_is_described() -> None:
    columns = {column.name for column in ROW if not column.name.startswith("dc_")}
    assert columns <= rows("docs/harvest.md")


def test_every_finding_is_described() -> None:
    assert rows("docs/operating.md") == set(findings.CODES)


def test_the_columns_of_the_views_are_those_described() -> None:
    """Names and types as DuckDB has them, in order for `captures`; `records` has more."""
    tables = text("docs/store.md").split("| column | type |")[1:]
    captures, more = (re.findall(r"^\| `(\w+)` \| ([^ ]+) \|", t, re.MULTILINE) for t in tables)
    published = Sequence(1, UNSTAMPED, 1, 1, {"capture": 1})
    manifest = Manifest(1, UNSTAMPED, "a.cz", (published,), {})
    with engine.connect() as connection:
        connection.execute(views.views(manifest, views.empty))
        described = {
            view: [row[:2] for row in connection.execute(f"DESCRIBE {view}").fetchall()]
            for view in ("captures", "records")
        }
    assert captures == described["captures"]
    assert sorted(captures + more) == sorted(described["records"])


def test_the_tables_of_the_store_are_described_with_their_columns() -> None:
    lines = re.findall(
        r"^\| `(\w+)` \| [^|]+ \| (`id`.*|`\w+`, .*) \|$", text("docs/store.md"), re.M
    )
    described = {table: re.findall(r"`(\w+)`", columns) for table, columns in lines}
    for table, columns in {**obi.TABLES, **fileset.TABLES}.items():
        assert described[table] == [column.name for column in columns], table


def test_every_command_is_in_the_readme() -> None:
    named = {re.split(r"[ `]", row)[1] for row in rows("README.md")}
    assert named == {name.partition(" ")[0] for name in COMMANDS}


@pytest.mark.parametrize("name", ["README.md", *(p.name for p in (ROOT / "docs").glob("*.md"))])
def test_links_lead_somewhere(name: str) -> None:
    base = ROOT if name == "README.md" else ROOT / "docs"
    for target in re.findall(r"\]\(([^)#]+)\)", (base / name).read_text("utf-8")):
        if "://" not in target:
            assert (base / target).exists(), target


def anchors(path: Path) -> set[str]:
    """Return what links into a document may name: its headings, as they are linked."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["README.md", *(p.name for p in (ROOT / "docs").glob("*.md"))])
def test_links_lead_to_headings(name: str) -> None:
    path = ROOT / name if name == "README.md" else ROOT / "docs" / name
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text("utf-8")):
        there = path.parent / target if target else path
        assert anchor in anchors(there), f"{target}#{anchor}"
