"""Each room imports only rooms below it, and what is deployed needs few packages."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.house import (
    MEMBER_IMPORTS,
    ROOMS,
    duplicate_classes,
    imports,
    long_functions,
    longest_chain,
    member_imports,
    modules,
    overweight,
    participles,
    placeholders,
    room_of,
    tree,
    used_once,
)
from builder.commands.command_table import COMMANDS, FAMILIES, GROUPS
from builder.exports import EXPORTS
from functions.kinds import KINDS

ROOT = Path(__file__).parents[1]
LOOSE = 11
"""The most modules that stand loose in `builder/`."""
CHAIN = 15
"""The most modules that import one another, one after the other."""
DEPLOYED = {
    *("apig_wsgi", "chardetng_py", "duckdb", "jinja2", "markupsafe", "msgspec", "obstore"),
    "webencodings",
}
"""jinja2 brings markupsafe."""
OPTIONAL = {"brotli", "isal", "zstandard"}  # what is deployed does without them
HEAVY = {
    # package: the one file that imports it, or two where each has a use of its own; last, a folder
    "ada_url": "builder/http/url.py",
    "boto3": "builder/store/aws.py",
    "botocore": "builder/store/aws.py",
    "chardetng_py": "functions/archive/charset.py",
    "cryptography": "builder/outputs/log/note.py",
    "distributed": "builder/sources/webarchives/ingest/engines.py",
    "duckdb": "functions/store/engine.py",
    "fastavro": "builder/outputs/tables/avro.py",
    "jinja2": (
        "builder/check/page.py functions/oai/render/loop.py functions/oai/render/template.py"
    ),
    "obstore": "functions/store/client.py",
    "pyarrow": (
        "builder/store/parquet/ranges.py builder/store/parquet/reader.py "
        "builder/store/parquet/writer.py"
    ),
    "apig_wsgi": "functions/http/lambda_instance.py",
    "gunicorn": "builder/serve/server.py builder/serve/worker.py",
    "isal": "builder/serve/server.py functions/archive/inflate.py",
    "lxml": "builder/check/profiles.py builder/check/records.py builder/sources/records/",
    "msgspec": ("builder/store/documents.py functions/kinds/kind.py functions/snapshot/seal.py"),
    "prometheus_client": "builder/serve/metrics.py",
    "protego": "builder/http/politeness.py",
    "publicsuffixlist": "builder/store/suffix_list.py",
    "pymarc": "builder/sources/records/forms/charsets.py",
    "warcio": "builder/exports/warc/gathered_files.py",
    "pyspark": "builder/sources/webarchives/ingest/engines.py",
    "tqdm": "builder/progress.py",
    "urllib3": "builder/http/connections.py builder/store/aws.py",
    "xxhash": "builder/sources/harvest/version.py builder/sources/records/record.py",
    "zstandard": "functions/archive/zstd.py functions/store/plain_columns.py",
}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_a_room_imports_only_rooms_below_it() -> None:
    found = []
    for path in sources("functions", "builder"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        own = room_of(module)
        assert own is not None or module == "functions", module
        for name in imports(path):
            room = room_of(name)
            # `from builder import errors` names the package and then the module.
            if room in (None, own) or (ROOT / name.replace(".", "/")).is_dir():
                continue
            if ROOMS.index(own) >= ROOMS.index(room):
                found.append(f"{module} imports {name}")
    assert not found


def test_each_package_is_a_room() -> None:
    packages = {
        ".".join(path.relative_to(ROOT).parts[:2])
        for top in ("builder", "functions")
        for path in (ROOT / top).glob("*/")
        if any(path.glob("*.py"))
    }
    assert packages <= set(ROOMS)
    for room in ROOMS:
        path = ROOT / room.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").exists(), room


def test_no_chain_of_imports_is_long() -> None:
    assert len(longest_chain()) <= CHAIN


def test_members_of_families_are_named_only_where_it_is_listed() -> None:
    assert member_imports() == MEMBER_IMPORTS


def test_no_module_of_the_core_compares_with_the_name_of_a_kind() -> None:
    own = ("functions.kinds.", "builder.kinds.", "builder.sources.", "builder.commands.")
    found = {
        name
        for name, path in modules().items()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Compare | ast.MatchValue) and not name.startswith(own)
        for word in ast.walk(node)
        if isinstance(word, ast.Constant) and word.value in {*KINDS}
    }
    assert found == {
        "functions.content.representation",  # the field `file` of an address
        "functions.oai.render.copy_address",
        "functions.site.site",  # the page of a record
        "functions.snapshot.oai_name",  # the first level of sets
    }


def test_few_modules_stand_loose() -> None:
    assert len(list((ROOT / "builder").glob("*.py"))) <= LOOSE


def test_names_say_what_they_stand_for() -> None:
    assert participles() == []
    assert duplicate_classes() == {}
    assert placeholders() == []
    assert len(used_once()) <= 250


def test_commands_are_what_nobody_but_the_command_line_imports() -> None:
    for path in sources("functions", "builder"):
        if path.name != "__main__.py" and "commands" not in path.parts:
            assert not [n for n in imports(path) if n.startswith("builder.commands")], path


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_says_what_each_does(name: str) -> None:
    command = COMMANDS[name]
    (line, *_) = (command.load().run.__doc__ or "").split("\n")
    assert line == command.summary
    assert command.group in GROUPS


def test_each_command_is_in_the_table() -> None:
    folder = ROOT / "builder" / "commands"
    names = {path.stem for path in folder.glob("*/*.py") if path.parent.name != "demo"}
    assert names - {"__init__"} | {*FAMILIES} == {name.partition(" ")[0] for name in COMMANDS}


def test_each_export_is_a_folder_with_a_row() -> None:
    folder = ROOT / "builder" / "exports"
    names = {path.parent.name for path in folder.glob("*/export.py")}
    assert names == {export.name for export in EXPORTS}


def loaded(path: Path, known: set[Path]) -> set[Path]:
    """Return the files of Sheaf that are imported where `path` is, before anything is called."""
    if path not in known:
        known.add(path)
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in (node.module, *(f"{node.module}.{a.name}" for a in node.names)):
                    for end in (".py", "/__init__.py"):
                        if (file := ROOT / (name.replace(".", "/") + end)).exists():
                            loaded(file, known)
    return known


BEGIN = {"cli.py": 18, "make/fileset.py": 144, "make/ingest.py": 72, "serve/status.py": 78}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("path", "most"), {**BEGIN, "../aws/fileset_worker.py": 144, "make/publish.py": 157}.items()
)
def test_what_begins_at_once_loads_few_files_and_no_large_library(path: str, most: int) -> None:
    files = loaded((ROOT / "builder" / "commands" / path).resolve(), set())
    assert len(files) <= most
    assert not files & {ROOT / name for name in HEAVY["pyarrow"].split()}
    assert ROOT / HEAVY["duckdb"] not in files or path == "make/publish.py"


def test_listing_knows_no_xml_and_rendering_no_database() -> None:
    listing = ROOT / "functions/oai/listing.py"
    assert "render" not in {file.parent.name for file in loaded(listing, set())}
    for path in sources("functions/oai/render"):
        assert ROOT / HEAVY["duckdb"] not in loaded(path, set()), path


def third_parties(path: Path) -> set[str]:
    heads = {name.partition(".")[0] for name in imports(path)}
    return heads - set(sys.stdlib_module_names) - {"functions", "builder"}


def test_what_is_deployed_needs_few_packages() -> None:
    assert set().union(*map(third_parties, sources("functions"))) == DEPLOYED | OPTIONAL


@pytest.mark.parametrize(("package", "files"), HEAVY.items())
def test_a_heavy_library_is_imported_in_one_file(package: str, files: str) -> None:
    users = [
        path.relative_to(ROOT).as_posix()
        for path in sources("functions", "builder")
        if package in third_parties(path)
    ]
    if files.endswith("/"):
        assert users
        assert all(user.startswith(tuple(files.split())) for user in users)
    else:
        assert sorted(users) == files.split()


def test_modules_are_named_after_something() -> None:
    for path in sources("functions", "builder"):
        assert path.stem not in {"utils", "util", "common", "helpers", "misc"}


def test_product_and_tests_stay_within_their_weight() -> None:
    assert overweight() == []


def test_functions_stay_short() -> None:
    assert long_functions() == []


def test_the_formatter_decides_the_form() -> None:
    for path in sources("functions", "builder", "tests", "bench"):
        assert not re.search(r"# fmt: (skip|off)\b", path.read_text("utf-8")), path
