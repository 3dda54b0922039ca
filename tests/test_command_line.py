"""The command line before any command is carried out: what is refused, and where options stand."""

import argparse
from collections.abc import Iterator
from importlib import import_module

import pytest

from builder import cli
from builder.context import Context

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
    parser = argparse.ArgumentParser()
    import_module(f"builder.commands.{command}").add(parser)
    values = [action for action in parser._actions if action.nargs != 0]
    for action in values:
        if action.option_strings:
            for option in action.option_strings:
                yield [command, option], action
    named = [action for action in values if not action.option_strings]
    for number, action in enumerate(named):
        yield [command, *["x"] * number], action


@pytest.mark.parametrize("command", cli.COMMANDS)
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
    assert arguments.run.__module__ == "builder.commands.status"


@pytest.mark.parametrize("line", ["--config serve query x", "--store=s --json query x"])
def test_the_command_is_imported_before_interrupts_are_heard(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported: list[str] = []
    monkeypatch.setattr(cli, "import_module", imported.append)
    cli.load(line.split())
    assert imported == ["builder.commands.query"]


@pytest.mark.parametrize("given", [[], ["help"], ["--help"], ["-h"]])
def test_without_a_command_it_helps(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(given)
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, "")
    assert all(f"\n    {command} " in out for command in cli.COMMANDS)


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
    assert refused(capsys, "x").endswith("'x' is no command (`sheaf --help` lists them)\n")
    assert "no command" in refused(capsys, "help", "x")
    assert "no command" in refused(capsys, "")


def test_a_mistake_names_the_command_whose_help_tells_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "`sheaf status --help`" in refused(capsys, "status", "--unknown")
    assert "`sheaf ingest --help`" in refused(capsys, "ingest", "--jobs", "x")
    assert "`sheaf --help`" in refused(capsys, "--json")
