"""The demo runs commands as a person does, and takes what they print."""

import argparse
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from builder.commands.demo.scenario import Scenario, ScenarioError
from builder.commands.demo.shell import Shell
from builder.errors import UsageError
from builder.store.context import Context, from_environment


def context(command: Callable[[Context], int], seen: list[Sequence[str]] | None = None) -> Context:
    """Return the context of a demo whose commands all do this."""

    def carry_out(line: Sequence[str], surround: Callable[[Any], Context]) -> int:
        if seen is not None:
            seen.append(line)
        return command(surround(argparse.Namespace(json="--json" in line)))

    return Context(argparse.Namespace(carry_out=carry_out), {"SHEAF_PAGES_RECORDS": "7"})


def test_a_command_gives_its_documents_and_keeps_its_remarks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(context: Context) -> int:
        assert not context.environment
        context.say("a remark")
        context.result("for people", {"a": 1})
        print(json.dumps([2]))
        return 1

    seen: list[Sequence[str]] = []
    reply = Shell(context(command, seen), tmp_path / "sheaf.toml").run(["status"])
    assert (reply.code, reply.documents, reply.remarks) == (1, [{"a": 1}, [2]], ["a remark"])
    assert seen == [["--config", str(tmp_path / "sheaf.toml"), "--json", "status"]]
    assert capsys.readouterr() == ("", "")


def test_a_command_that_fails_ends_the_scenario_with_its_remarks(tmp_path: Path) -> None:
    def command(context: Context) -> int:
        context.say("the disk is full")
        return 1

    with ExitStack() as stack:
        scenario = Scenario(context(command), tmp_path, stack)
        with pytest.raises(ScenarioError, match="the disk is full"):
            scenario.play(["a.warc.gz"], [str(tmp_path)], 0)
    assert not scenario.report.lines


def test_what_a_command_prints_is_checked(tmp_path: Path) -> None:
    documents = iter(
        [
            {"sources": [{"captures": 3, "skips": {"request": 2}, "faults": 0}]},
            {"records": 4},
            {"snapshot": {"kinds": {"capture": 3}, "sets": 1}},
            [{"status": "complete", "records": 3, "pages": 1}],
        ]
    )

    def command(context: Context) -> int:
        context.result("", next(documents))
        return 0

    with ExitStack() as stack:
        scenario = Scenario(context(command), tmp_path, stack)
        scenario._serve = lambda port: None  # type: ignore[assignment,method-assign,return-value]
        with pytest.raises(ScenarioError, match="4 records published, 3 harvested"):
            scenario.play(["a.warc.gz"], [str(tmp_path)], 0)
    assert "  left out    2 request" in scenario.report.lines


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    config = tmp_path / "sheaf.toml"
    runtime = from_environment(argparse.Namespace())
    with (
        pytest.raises(UsageError, match=str(config)),
        Shell(runtime, config).serve(["serve", "--port", "0"]),
    ):
        pass
