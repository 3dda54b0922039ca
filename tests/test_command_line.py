"""The command line before any command is carried out: what is refused, and where options stand."""

import argparse
import errno
import os
import shlex
from collections.abc import Iterator

import pytest

from builder.commands import cli, command_table
from builder.commands.command_table import COMMANDS, FAMILIES, GROUPS
from builder.store.context import Context

EMPTY = {"": "is empty", " ": "is empty", "\t\r\n ": "is empty", "a\0b": "NUL character"}


class Parsed(Exception):
    """The arguments were accepted."""


def parse(*given: str) -> argparse.Namespace:
    """Return the arguments as a command gets them, without carrying it out."""

    def stop(arguments: argparse.Namespace) -> Context:
        raise Parsed(arguments)

    with pytest.raises(Parsed) as parsed:
        cli.main(given, stop)
    (arguments,) = parsed.value.args
    assert isinstance(arguments, argparse.Namespace)
    return arguments


def refused(capsys: pytest.CaptureFixture[str], *given: str) -> str:
    """Return the line by which the arguments are refused."""

    def stop(arguments: argparse.Namespace) -> Context:
        raise AssertionError(f"accepted: {arguments}")

    assert cli.main(given, stop) == 2, given
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sheaf: ")
    assert err.count("\n") == 1
    return err


def places(command: str) -> Iterator[tuple[list[str], argparse.Action]]:
    """Yield each argument of a command that has a value, and the line in front of that value."""
    parser, words = argparse.ArgumentParser(), command.split()
    COMMANDS[command].load().add(parser)
    values = [action for action in parser._actions if action.nargs != 0]
    for action in values:
        if action.option_strings:
            for option in action.option_strings:
                yield [*words, option], action
    named = [action for action in values if not action.option_strings]
    for number, action in enumerate(named):
        yield [*words, *["x"] * number], action


@pytest.mark.parametrize("command", COMMANDS)
def test_no_argument_of_any_command_may_be_empty(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for line, action in places(command):
        behind = ["x"] * 2 if command == "harvest" and not action.option_strings else []
        for value, said in EMPTY.items():
            error = refused(capsys, *line, value, *behind)
            assert "argument " in error
            if action.type is None:  # others say what they expect
                assert said in error


@pytest.mark.parametrize("option", ["--store", "--config"])
@pytest.mark.parametrize("value", EMPTY)
def test_nor_may_those_that_every_command_has(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"argument {option}: " in refused(capsys, option, value, "status")
    assert f"argument {option}: " in refused(capsys, "status", option, value)
    assert f"argument {option}: " in refused(capsys, "status", f"{option}={value}")


@pytest.mark.parametrize(
    ("line", "store", "config", "json"),
    [
        ("status", None, None, False),
        ("--config a status", None, "a", False),
        ("status --config a", None, "a", False),
        ("--config=a status --config b", None, "b", False),
        ("--store s --json status --config b", "s", "b", True),
        ("--json status --json", None, None, True),
        ("--store publish status --store ingest", "ingest", None, False),
        ("--config a --config b status", None, "b", False),
    ],
)
def test_options_of_every_command_stand_before_it_or_behind(
    line: str, store: str | None, config: str | None, json: bool
) -> None:
    arguments = parse(*line.split())
    assert (arguments.store, arguments.config, arguments.json) == (store, config, json)
    assert arguments.run.__module__ == "builder.commands.serve.status"


@pytest.mark.parametrize("line", ["--config serve query x", "--store=s --json query x"])
def test_the_command_is_imported_before_interrupts_are_heard(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported: list[str] = []
    monkeypatch.setattr(command_table, "import_module", imported.append)
    cli.load(line.split())
    assert imported == ["builder.commands.serve.query"]


@pytest.mark.parametrize("given", [[], ["help"], ["--help"], ["-h"]])
def test_without_a_command_it_helps(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(given)
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, "")
    assert all(f"\n    {name.partition(' ')[0]} " in out for name in COMMANDS)
    headings = [out.index(f"\n  {heading}:\n") for heading in GROUPS.values()]
    assert headings == sorted(headings)
    assert out.startswith("usage: sheaf [-h] [--version] ")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_command_with_subcommands_lists_them(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["help", name])
    out, _ = capsys.readouterr()
    assert ended.value.code == 0
    for command in COMMANDS.values():
        family, _, sub = command.name.partition(" ")
        assert not sub or (f"\n    {sub} " in out) == (family == name)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_exit_codes_and_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["help", *name.split()])
    out, _ = capsys.readouterr()
    command = COMMANDS[name]
    assert out.startswith(f"usage: sheaf {name} ")
    ending = out[out.index("\nexit codes:\n") :]
    assert ("\n  1 " in ending) == bool(command.faults)
    assert ending.splitlines()[-len(command.examples) :] == [f"  {e}" for e in command.examples]
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("name", "example"), [(c.name, example) for c in COMMANDS.values() for example in c.examples]
)
def test_each_example_is_one_of_its_command(name: str, example: str) -> None:
    program, *line = shlex.split(example)
    assert program == "sheaf"
    assert line[: len(name.split())] == name.split()
    assert parse(*line).run is COMMANDS[name].load().run


def test_the_table_has_one_or_two_examples_and_short_summaries() -> None:
    for command in COMMANDS.values():
        assert 1 <= len(command.examples) <= 2
        assert len(command.summary.split()) <= 13


@pytest.mark.parametrize(
    "given", [["help", "serve"], ["serve", "--help"], ["--json", "serve", "-h"]]
)
def test_a_command_has_its_own_help(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(given)
    out, _ = capsys.readouterr()
    assert ended.value.code == 0
    assert out.startswith("usage: sheaf serve ")
    assert "--access-log" in out


def test_a_command_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean `sheaf status`?" in refused(capsys, "--json", "stauts")
    assert refused(capsys, "x").endswith("'x' is not a command (`sheaf --help` lists them)\n")
    assert "not a command" in refused(capsys, "help", "x")
    assert "not a command" in refused(capsys, "")
    assert "choose from 'ocfl', 'bagit'," in refused(capsys, "export", "zip")
    assert "FORMAT" in refused(capsys, "export")


def test_a_mistake_names_the_command_whose_help_tells_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "`sheaf status --help`" in refused(capsys, "status", "--unknown")
    assert "`sheaf ingest --help`" in refused(capsys, "ingest", "--jobs", "x")
    for line in ("--json", "harvest", "serve --port x", "restore --as-of"):
        assert " --help`" in refused(capsys, *line.split())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(arguments: argparse.Namespace) -> Context:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(cli, "_forget_output", lambda: None)  # it is pytest's here
    assert cli.main(["status"], fail) == 2
    assert capsys.readouterr().err == f"sheaf: {os.strerror(number)}\n"
