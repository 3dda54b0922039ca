"""Statements in .sql files: they are read by name, and each is used."""

import re
from pathlib import Path

import pytest

import builder
from builder.snapshot import sql

FILES = sorted(Path(builder.__file__).parent.rglob("*.sql"))


def test_there_are_files() -> None:
    assert len(FILES) >= 8


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
