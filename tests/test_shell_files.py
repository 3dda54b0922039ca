"""The completions and the manual page are those of the commands, and shells and `man` read them."""

import shutil
import subprocess

import pytest

from builder.commands.command_table import COMMANDS
from builder.exports import EXPORTS
from tests.shell_files import COMPLETIONS, SHARE, files

BASH = """. "$0"; COMP_WORDS=(sheaf "$@"); COMP_CWORD=$#
_shtab_sheaf 2>/dev/null; printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = 'source $argv[1]; complete -C "sheaf $argv[2]"'
FAMILIES = {name.partition(" ")[0] for name in COMMANDS}


def output(*command: object) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=SHARE)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_they_are_those_of_the_commands() -> None:
    """`python -m tests.doc_tables` writes them."""
    wanted = files()
    assert {path: path.read_text("utf-8") for path in wanted} == wanted
    assert {path for path in SHARE.rglob("*") if path.is_file()} == set(wanted)


@pytest.mark.parametrize(
    "words, completed",
    [
        (("",), FAMILIES),
        (("pu",), {"publish"}),
        (("--json", "--store", "s", "stat"), {"status"}),
        (("export", ""), {export.name for export in EXPORTS}),
        (("export", "wacz", "--se"), {"--set"}),
        (("ingest", "--engine", ""), {"local", "dask", "spark", "lambda"}),
        (("ingest", "fis"), {"fish"}),
        (("ingest", "--work", "ma"), {"man"}),
    ],
)
def test_bash_completes(words: tuple[str, ...], completed: set[str]) -> None:
    lines = output("bash", "-c", BASH, SHARE / COMPLETIONS["bash"], *words).split()
    assert set(lines) == completed


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes() -> None:
    """It also shows what a command does."""
    text = output("fish", "--no-config", "-c", FISH, SHARE / COMPLETIONS["fish"], "export wac")
    assert text == f"wacz\t{COMMANDS['export wacz'].summary}\n"


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_its_completion() -> None:
    assert output("zsh", "-n", SHARE / COMPLETIONS["zsh"]) == ""


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_shows_the_page() -> None:
    """With each command and its options; mandoc, which is stricter, has nothing to say."""
    page = SHARE / "man" / "man1" / "sheaf.1"
    if shutil.which("mandoc"):
        assert output("mandoc", "-Tlint", page) == ""
    text = output("man", "--warnings", "--local-file", page)
    assert all(f"   sheaf {name}\n" in text for name in COMMANDS)
    assert "       --collection SPEC\n" in text
