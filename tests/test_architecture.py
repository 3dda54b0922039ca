"""Imports run one way, and what is deployed needs few packages."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from builder.cli import COMMANDS

ROOT = Path(__file__).parents[1]
ALLOWED = {
    # package: what it may import of Sheaf, besides itself
    "functions.snapshot": set(),
    "functions.archive": set(),
    "functions.store": {"functions.snapshot"},
    "functions.oai": {"functions.snapshot", "functions.store"},
    "functions.content": {
        "functions.archive",
        "functions.snapshot",
        "functions.store",
        "functions.oai",
    },
    "builder.sources": {"functions.archive", "functions.snapshot"},
    "builder.demo": {"functions.snapshot"},
    "builder.gather": {"builder", "functions.snapshot", "functions.oai"},
    "builder.filesets": {
        "builder",
        "builder.gather",
        "builder.obi",
        "builder.sources",
        "functions.archive",
        "functions.snapshot",
        "functions.oai",
    },
    "builder.harvest": {"builder", "builder.gather", "functions.snapshot"},
    "builder.rebuild": {
        "builder",
        "builder.gather",
        "builder.sources",
        "functions.archive",
        "functions.snapshot",
        "functions.store",
        "functions.oai",
        "functions.content",
    },
    "builder.wacz": {
        "builder",
        "functions.archive",
        "builder.sources",
        "functions.snapshot",
        "functions.store",
        "functions.oai",
        "functions.content",
    },
    "builder.commands": {
        "builder",
        "functions.snapshot",
        "functions.store",
        "functions.oai",
        "functions.content",
    },
    "builder": {
        "functions.archive",
        "functions.snapshot",
        "functions.store",
        "functions.oai",
        "functions.content",
    },
}
DEPLOYED = {"duckdb", "jinja2", "markupsafe", "obstore"}  # markupsafe is a part of jinja2
OPTIONAL = {"brotli", "isal", "zstandard"}  # what is deployed does without them
HEAVY = {
    # package: the one file that imports it, or two where each has a use of its own
    "ada_url": "builder/obi/url.py",
    "boto3": "builder/filesets/queue.py",
    "botocore": "builder/filesets/queue.py",
    "chardetng_py": "builder/sources/charset.py",
    "duckdb": "functions/oai/engine.py",
    "jinja2": "functions/oai/program.py functions/oai/template.py",
    "obstore": "functions/store/client.py",
    "pyarrow": "builder/parquet.py",
    "httpcore2": "builder/gather/wire.py",
    "internetarchive": "builder/filesets/archive.py",
    "isal": "builder/server.py functions/archive/inflate.py",
    "protego": "builder/gather/robots.py",
    "publicsuffixlist": "builder/sources/domain.py",
    "pypdfium2": "builder/gather/pdf.py",
    "waitress": "builder/connection.py builder/server.py",
    "warcio": "builder/demo/crawl.py builder/preserve/warc.py",
    "tqdm": "builder/progress.py",
    "zstandard": "functions/archive/zstd.py",
}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Return what a file imports; it is read once for all that is asked of it."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package_of(name: str) -> str | None:
    """Return the longest package of ALLOWED that `name` lies in."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if (package := ".".join(parts[:length])) in ALLOWED:
            return package
    return None


@pytest.mark.parametrize("path", list(sources("functions", "builder")), ids=lambda p: p.stem)
def test_imports_run_one_way(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    own = package_of(module)
    if own is None:  # functions/__init__.py
        assert not list(imported(path))
        return
    for name in imported(path):
        package = package_of(name)
        if package is not None and package != own:
            reaches_down = own in {"builder", "builder.commands"} and package.startswith("builder.")
            assert reaches_down or package in ALLOWED[own], f"{module} imports {name}"


def test_commands_are_what_nobody_but_the_command_line_imports() -> None:
    for path in sources("functions", "builder"):
        if path.name != "cli.py" and path.parent.name != "commands":
            assert not [n for n in imported(path) if n.startswith("builder.commands")], path


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_says_what_each_does(name: str) -> None:
    (line, *_) = (import_module(f"builder.commands.{name}").run.__doc__ or "").split("\n")
    assert line == COMMANDS[name]


def test_each_command_is_in_the_table() -> None:
    names = {path.stem for path in (ROOT / "builder" / "commands").glob("*.py")}
    assert names - {"__init__"} == COMMANDS.keys()


def loaded(path: Path, known: set[Path]) -> set[Path]:
    """Return the files of Sheaf that are imported where `path` is, before anything is called."""
    if path not in known:
        known.add(path)
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in (node.module, *(f"{node.module}.{a.name}" for a in node.names)):
                    file = ROOT / (name.replace(".", "/") + ".py")
                    if file.exists():
                        loaded(file, known)
    return known


@pytest.mark.parametrize("path", ["cli.py", "commands/fileset.py", "worker.py"])
def test_what_archives_datasets_does_without_the_large_libraries(path: str) -> None:
    found = {p.relative_to(ROOT).as_posix() for p in loaded(ROOT / "builder" / path, set())}
    assert not found & {HEAVY["duckdb"], HEAVY["pyarrow"]}


def third_parties(path: Path) -> set[str]:
    heads = {name.partition(".")[0] for name in imported(path)}
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
    assert sorted(users) == files.split()


def test_modules_stay_short_and_are_named_after_something() -> None:
    for path in sources("functions", "builder"):
        assert path.stem not in {"utils", "util", "common", "helpers", "misc"}
        assert len(path.read_text("utf-8").splitlines()) <= 300, path
