"""The documentation names what the program has."""

import re
from pathlib import Path

import pytest

from builder.commands.command_table import COMMANDS
from builder.exports.restore import captures as rebuild
from builder.http.errors import OUTCOMES
from builder.intake.captures import FAULT_CODES
from builder.snapshot import views
from builder.sources.harvest.version import ROW
from builder.sources.redif import spool as redif
from builder.sources.redif.form import specification
from builder.store import findings as findings
from functions.config import keys
from functions.snapshot import item_tables, obi
from functions.snapshot.manifest import UNSTAMPED, Manifest, Sequence
from functions.store import engine
from tests import doc_tables

ROOT = Path(__file__).parents[1]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def rows(name: str, heading: str = "") -> set[str]:
    """Return the names in back-quotes in the first column of a document's tables.

    With a heading, of that section alone; it ends at the next heading of any level.
    """
    document = text(name)
    if heading:
        (document,) = re.findall(rf"^#+ {heading}\n(.*?)(?=^#|\Z)", document, re.M | re.S)
    cells = re.findall(r"^\| (`[^|]+) \|", document, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_key_of_the_configuration_is_described() -> None:
    assert rows("docs/reference/configuration.md") == {key.name for key in keys.KEYS}


def test_every_fault_is_described() -> None:
    codes = set(FAULT_CODES) | set(specification.CODES) | set(redif.FAULT_CODES)
    assert codes <= rows("docs/reference/sources.md")


def test_every_outcome_of_gathering_is_described() -> None:
    assert rows("docs/guide/repec.md", "Outcomes") == set(OUTCOMES)


def test_every_code_of_a_restore_is_described() -> None:
    assert rows("docs/guide/restoring.md", "Missing files") == set(rebuild.CODES)


def test_the_tables_of_the_documentation_are_those_of_the_code() -> None:
    """`python -m tests.doc_tables` writes them."""
    found = {name: text(name) for name in DOCUMENTS}
    assert {name: doc_tables.render(document) for name, document in found.items()} == found
    for name in doc_tables.TABLES:
        assert sum(f"<!-- {name} -->" in document for document in found.values()) == 1


def test_every_column_of_harvests_is_described() -> None:
    columns = {column.name for column in ROW if not column.name.startswith("dc_")}
    assert columns <= rows("docs/guide/harvesting.md")


def test_every_finding_is_described() -> None:
    assert rows("docs/operations/operate.md", "Findings") == set(findings.CODES)


def test_the_columns_of_the_views_are_those_described() -> None:
    """Names and types as DuckDB has them, in order for `captures`; `records` has more."""
    tables = text("docs/reference/store.md").split("| column | type |")[1:]
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
        r"^\| `(\w+)` \| [^|]+ \| (`id`.*|`\w+`, .*) \|$", text("docs/reference/store.md"), re.M
    )
    described = {table: re.findall(r"`(\w+)`", columns) for table, columns in lines}
    for table, columns in {**obi.TABLES, **item_tables.TABLES}.items():
        assert described[table] == [column.name for column in columns], table


def test_every_command_is_in_the_readme() -> None:
    named = {re.split(r"[ `]", row)[1] for row in rows("README.md")}
    assert named == {name.partition(" ")[0] for name in COMMANDS}


DOCUMENTS = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]


def prose(name: str) -> str:
    """Return a document without its code blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", text(name), flags=re.MULTILINE | re.DOTALL)


def links(name: str) -> list[str]:
    """Return the targets of a document's links within the repository."""
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose(name)) if "://" not in link]


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(str(path.relative_to(ROOT))), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_to_files_and_headings(name: str) -> None:
    for link in links(name):
        target, _, anchor = link.partition("#")
        path = ((ROOT / name).parent / target).resolve() if target else ROOT / name
        assert path.exists(), link
        assert not anchor or anchor in anchors(path), link


@pytest.mark.parametrize("name", [*DOCUMENTS, "CHANGELOG.md", "bench/README.md"])
def test_lines_have_at_most_100_characters(name: str) -> None:
    """Tables and code are exempt."""
    long = [line for line in prose(name).splitlines() if len(line) > 100 and line[0] != "|"]
    assert long == []


def test_the_documentation_has_at_most_32_000_words() -> None:
    """Code counts; the pipes and rules of tables do not, nor what is made from tables in code."""
    made = ("docs/reference/cli.md", "docs/reference/checks.md")
    written = [name for name in DOCUMENTS[1:] if name not in made]
    words = [w for name in written for w in text(name).split() if re.search(r"\w", w)]
    assert len(words) <= 32_000


def test_messages_that_are_explained_are_those_of_the_code() -> None:
    messages = re.findall(r"^- `([^`]+)`:", text("docs/troubleshooting.md"), re.MULTILINE)
    code = [
        path.read_text("utf-8")
        for top in ("builder", "functions")
        for path in (ROOT / top).rglob("*.py")
    ]
    assert len(messages) > 10
    assert not [message for message in messages if not any(message in module for module in code)]


def test_the_index_leads_to_every_document() -> None:
    linked = {f"docs/{link}" for link in links("docs/index.md")}
    assert {*DOCUMENTS} - linked == {"README.md", "docs/index.md"}


NAMED_DOCUMENT = re.compile(r"docs/[\w/-]+\.md")
"""A document that a message, docstring or comment names."""


@pytest.mark.parametrize("room", ["builder", "functions", "infra", "bench", "tests", "templates"])
def test_documents_that_the_code_names_exist(room: str) -> None:
    files = (p for p in (ROOT / room).rglob("*") if p.suffix in {".py", ".yaml", ".toml", ".sql"})
    named = {n for p in files for n in NAMED_DOCUMENT.findall(p.read_text("utf-8"))}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
