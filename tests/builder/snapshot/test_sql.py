"""Statements in .sql files: they are read by name, and DuckDB can parse each of them."""

import re
from pathlib import Path

import duckdb
import pytest

import builder
from builder.snapshot import sql

FILES = sorted(Path(builder.__file__).parent.rglob("*.sql"))
# What stands for a field when a statement is parsed; a name stands for all others.
PARTS = {
    "chosen": "x AS y",
    "described": "x AS y",
    "facets": "x AS y",
    "inherited": "x AS y",
    "own_values": "x AS y",
    "pairs": "SELECT x",
    "typed": "x INTEGER",
}
_SEVERAL = ("create", "empty", "merge", "rebase")
FIELD = re.compile(r"\{(\w+)\}")


def test_there_are_files() -> None:
    assert len(FILES) >= 8


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_each_statement_can_be_parsed(path: Path) -> None:
    assert path.with_suffix(".py").exists()
    found = sql.read_statements(path)
    assert len(found) == path.read_text("utf-8").count("-- name: ")
    for name, text in found.items():
        fields = {field: PARTS.get(field, "x") for field in FIELD.findall(text)}
        whole = sql.insert_fields(text, **fields)
        if re.search("^CASE", whole, re.MULTILINE):  # an expression
            whole = f"SELECT\n{whole}"
        # A schema is made, and replaced, as a whole.
        assert len(duckdb.extract_statements(whole)) == 1 or name in _SEVERAL, name
        assert not text.rstrip().endswith(";"), name


def test_each_statement_is_used_once() -> None:
    for path in FILES:
        code = path.with_suffix(".py").read_text("utf-8")
        if "\nSTATEMENTS = " in code:  # modules of the room share them
            code = "".join(one.read_text("utf-8") for one in path.parent.glob("*.py"))
        used = re.findall(r'(?:_SQL|STATEMENTS)\.get\(\s*"(\w+)"', code)
        used += {*re.findall(r'self\._(?:execute|ask)\(\s*"(\w+)"', code)}
        assert sorted(used) == sorted(sql.read_statements(path)), path


def test_fields_are_filled_and_nothing_else() -> None:
    text = "SELECT {'a': $a, b: 1}, {columns} FROM {files}"
    whole = "SELECT {'a': $a, b: 1}, c FROM t"
    assert sql.insert_fields(text, columns="c", files="t") == whole
    with pytest.raises(KeyError):
        sql.insert_fields(text, columns="c")
    with pytest.raises(KeyError, match="no field more"):
        sql.insert_fields(text, columns="c", files="t", more="x")


def test_comments_stay_and_names_are_distinct(tmp_path: Path) -> None:
    path = tmp_path / "some.sql"
    path.write_text("-- name: one\n-- Why.\nSELECT 1\n\n-- name: two\nSELECT 2\n")
    assert sql.read_statements(path) == {"one": "-- Why.\nSELECT 1", "two": "SELECT 2"}
    statements = sql.Statements(str(tmp_path / "some.py"))
    assert statements.get("two") == "SELECT 2"
    path.write_text("-- name: one\nSELECT 1\n-- name: one\nSELECT 2\n")
    with pytest.raises(ValueError, match="two statements"):
        sql.read_statements(path)
