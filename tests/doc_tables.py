"""Tables of the documentation that the code has: `python -m tests.doc_tables` writes them anew.

A table stands between `<!-- NAME -->` and `<!-- end -->`. Completions and the manual page are
written as well.
"""

import argparse
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.ceiling import load_limits
from builder.check.checks import load_checks
from builder.check.profiles import OBLIGATIONS, list_profiles
from builder.commands.command_table import COMMANDS
from builder.sources.datasets.status import STATUSES
from builder.sources.datasets.strategies.choice import STRATEGIES
from tests import shell_files

DOCS = Path(__file__).parents[1] / "docs"


def strategies() -> Iterator[str]:
    """Yield the lines of the table of strategies; those that store the same share one."""
    yield "| Strategy | Stored |"
    yield "|---|---|"
    for stored in dict.fromkeys(STRATEGIES.values()):
        names = ", ".join(f"`{name}`" for name, one in STRATEGIES.items() if one == stored)
        yield f"| {names} | {stored} |"


def statuses() -> Iterator[str]:
    """Yield the lines of the table of statuses."""
    yield "| Status | Family | Of | Meaning |"
    yield "|---|---|---|---|"
    for one in STATUSES.values():
        meaning = one.meaning + ("; may pass" if one.retryable else "")
        yield f"| `{one.name}` | {one.family} | {one.scope} | {meaning} |"


def checks() -> Iterator[str]:
    """Yield the lines of the table of checks."""
    yield "| Check | What must hold | Section | Severity |"
    yield "|---|---|---|---|"
    for check in load_checks().values():
        yield f"| `{check.number}` | {check.title} | {check.section} | {check.severity} |"


def profiles() -> Iterator[str]:
    """Yield the lines of the table of profiles, with the number of their rules by obligation."""
    yield f"| Profile | Guidelines | {' | '.join(OBLIGATIONS)} |"
    yield "|---|---|" + "---|" * len(OBLIGATIONS)
    for profile in list_profiles().values():
        counts = Counter(rule.obligation for rule in profile.rules)
        cells = [f"`{profile.name}`", profile.title, *(str(counts[name]) for name in OBLIGATIONS)]
        yield f"| {' | '.join(cells)} |"


def ceiling() -> Iterator[str]:
    """Yield the lines of the table of the worst month, for some parameters of the template."""
    choices = (
        "",
        "RatePerSecond=2 Concurrency=20",
        "RatePerSecond=1 Burst=20 Concurrency=2 Memory=512",
        "Content=yes Concurrency=20",
    )
    months = [
        load_limits(**dict(pair.split("=") for pair in choice.split())).worst_month()
        for choice in choices
    ]
    heads = [f"`{choice}`" if choice else "defaults" for choice in choices]
    yield f"| The worst month, $ | {' | '.join(heads)} |"
    yield "|---|" + "---|" * len(choices)
    for part in months[0]:
        yield f"| {part} | {' | '.join(f'{month[part]:,.0f}' for month in months)} |"
    yield f"| **together** | {' | '.join(f'**{sum(month.values()):,.0f}**' for month in months)} |"


def commands() -> Iterator[str]:
    """Yield the reference of the commands: of each its usage, arguments, exit code and examples."""
    for command in COMMANDS.values():
        body, parser = command.load(), argparse.ArgumentParser(add_help=False)
        body.add(parser)
        rows = [
            (_usage(action), " ".join((action.help or "").split())) for action in parser._actions
        ]
        places = [usage for usage, _ in rows if not usage.startswith("-")]
        options = ["[options]"] if len(places) < len(rows) else []
        yield f"## sheaf {command.name}\n"
        yield f"`{' '.join(['sheaf', command.name, *places, *options])}`\n"
        yield textwrap.fill(" ".join((inspect.getdoc(body.run) or "").split()), 100) + "\n"
        if rows:
            yield "| Argument | Meaning |\n|---|---|"
            for usage, meaning in rows:
                cells = (f"`{usage}`", meaning[:1].upper() + meaning[1:])
                yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
            yield ""
        if command.faults:
            yield f"Exits with 1 if {command.faults}.\n"
        yield "\n".join(["```", *command.examples, "```\n"])


def _usage(action: argparse.Action) -> str:
    """Return how an argument is written, such as `--limit N`."""
    value = action.metavar or (
        f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
    )
    if action.option_strings and action.nargs != 0:
        value = value or action.dest.upper()
    if action.nargs in ("?", "*"):
        value = f"[{value}]"
    repeated = "..." if action.nargs in ("*", "+") else ""
    return " ".join(filter(None, [", ".join(action.option_strings), f"{value}{repeated}"]))


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "strategies": strategies,
    "statuses": statuses,
    "checks": checks,
    "profiles": profiles,
    "commands": commands,
    "ceiling": ceiling,
}


def render(document: str) -> str:
    """Return a document with its tables as the code has them."""
    for name, lines in TABLES.items():
        before, begin, rest = document.partition(f"<!-- {name} -->\n")
        if begin:
            _, end, after = rest.partition("<!-- end -->")
            document = "".join([before, begin, *(f"{line}\n" for line in lines()), end, after])
    return document


def main() -> None:
    for path in DOCS.rglob("*.md"):
        path.write_text(render(path.read_text("utf-8")), "utf-8")
    for path, text in shell_files.files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
