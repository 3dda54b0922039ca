"""Table of commands: names, groups, summaries, examples, and the help text made of them."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from builder.exports import EXPORTS

GROUPS = {
    "start": "start",
    "make": "make an archive",
    "serve": "serve it",
    "keep": "keep it",
}
"""Groups of commands in the order of the help, and their headings."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name on the command line, a summary of one line, and one or two examples.

    `faults` says when it exits with 1; if empty, it never does. `writes`: to the store, always.
    """

    name: str
    group: str
    summary: str
    examples: tuple[str, ...]
    faults: str = ""
    writes: bool = False

    def load(self) -> Any:
        """Import the module with the `add` and `run` of the command."""
        family, _, name = self.name.partition(" ")
        if family == "export":
            return import_module(f"builder.exports.{name}.export")
        return import_module(f"builder.commands.{self.group}.{family}")


FAMILIES = {
    "export": ("FORMAT", "Write the store's content in other formats."),
    "replay": ("ACTION", "Replay archived pages with their scripts."),
}
"""Commands with subcommands, as EXPORTS: the noun for these, and a summary."""

_ROWS = (
    Command(
        "init",
        "start",
        "Write a configuration that lists every key with its default.",
        ("sheaf init", "sheaf init archive --name 'An archive' --namespace archive.example.org"),
    ),
    Command(
        "demo",
        "start",
        "Demonstrate each step on this machine: ingest, publish, serve, harvest, restore.",
        ("sheaf demo", "sheaf demo crawl.warc.gz --once"),
        "the harvest differs from the published records",
    ),
    Command(
        "ingest",
        "make",
        "Read web archives, harvests and ReDIF for the next publish.",
        ("sheaf ingest crawl/*.warc.gz --collection serials", "sheaf ingest RePEc/"),
        "a file failed, or with --strict: the data has faults",
        writes=True,
    ),
    Command(
        "redif",
        "make",
        "Read ReDIF: print templates as JSON, and a summary of faults.",
        ("sheaf redif paper.rdf", "sheaf redif RePEc/ --strict"),
        "with --strict: there are errors",
    ),
    Command(
        "crosswalk",
        "make",
        "Show what a record of a file becomes in each format.",
        ("sheaf crosswalk books.mrc", "sheaf crosswalk export/people.csv --record 12"),
    ),
    Command(
        "gather",
        "make",
        "Fetch the full texts that RePEc templates name.",
        ("sheaf gather", "sheaf gather --only RePEc:aaa --limit 100"),
        "with --strict: files could not be fetched",
        writes=True,
    ),
    Command(
        "fileset",
        "make",
        "Archive datasets of data platforms, with their files.",
        ("sheaf fileset 10.5281/zenodo.7078725", "sheaf fileset --retry --strict"),
        "with --strict: a dataset is not archived",
        writes=True,
    ),
    Command(
        "harvest",
        "make",
        "Harvest OAI-PMH repositories into a folder.",
        (
            "sheaf harvest https://archive.example.org/oai harvests/",
            "sheaf harvest https://archive.example.org/oai harvests/ --set serials --full",
        ),
        "a harvest failed, or is not complete",
    ),
    Command(
        "check",
        "make",
        "Check any OAI-PMH repository: the protocol, its lists and its records.",
        (
            "sheaf check https://archive.example.org/oai",
            "sheaf check https://archive.example.org/oai --set serials --json",
        ),
        "something breaks harvesters or the specification",
    ),
    Command(
        "publish",
        "make",
        "Publish the ingested data as the next snapshot.",
        ("sheaf publish", "sheaf publish --json"),
        writes=True,
    ),
    Command(
        "update",
        "make",
        "Harvest the configured repositories, ingest what is whole, publish: one night.",
        ("sheaf update", "sheaf update --json"),
        "a repository or source was not whole, which the table names",
        writes=True,
    ),
    Command(
        "serve",
        "serve",
        "Serve OAI-PMH at /oai and pages for people at /.",
        ("sheaf serve", "sheaf serve --port 0 --content"),
    ),
    Command(
        "router",
        "serve",
        "Print FILE of a router, by which another server answers from a site.",
        (
            "sheaf router nginx.conf --root /srv/site",
            "sheaf router worker.js --base https://oai.example.org/oai",
        ),
    ),
    Command(
        "replay install",
        "serve",
        "Install ReplayWeb.page from FILE, so that archived pages run their scripts.",
        ("sheaf replay install replaywebpage-2.5.3.tgz",),
        writes=True,
    ),
    Command(
        "query",
        "serve",
        "Query the newest snapshot with DuckDB's SQL.",
        ('sheaf query "SELECT url_host_name, count(*) FROM captures GROUP BY 1"',),
    ),
    Command(
        "status",
        "serve",
        "Show the published snapshot and the data waiting to be published.",
        ("sheaf status", "sheaf status --json"),
    ),
    Command(
        "withdraw",
        "keep",
        "Withdraw items: replace them with tombstones that have a reason.",
        (
            "sheaf withdraw --url-prefix http://a.example.org/ --dry-run",
            "sheaf withdraw --set domain:org:example --reason 'a request' --purge",
        ),
        writes=True,
    ),
    Command(
        "reinstate",
        "keep",
        "Undo a withdrawal: bring items back.",
        ("sheaf reinstate --set domain:org:example",),
        writes=True,
    ),
    Command(
        "expire",
        "keep",
        "Retire old snapshots, and delete objects that no kept snapshot needs.",
        ("sheaf expire --keep 10", "sheaf expire --older-than 90d"),
        writes=True,
    ),
    Command(
        "verify",
        "keep",
        "Check that the store is complete and consistent.",
        ("sheaf verify --newest --sample 10", "sheaf verify --bundle proof.json --key VKEY"),
        "the store is damaged, or a bundle proves nothing",
    ),
    Command(
        "prove",
        "keep",
        "Prove that a record was in a snapshot, or was not.",
        (
            "sheaf prove --new-key sheaf.key",
            "sheaf prove oai:archive.example.org:capture,k3 --as-of 2026-11-26",
        ),
    ),
    Command(
        "copy",
        "keep",
        "Copy the store to another place, or bring a copy up to date.",
        ("sheaf copy /backup/store", "sheaf copy s3://backup/store --newest"),
    ),
    *(
        Command(f"export {export.name}", "keep", export.summary, export.examples, export.faults)
        for export in EXPORTS
    ),
    Command(
        "restore",
        "keep",
        "Restore a site from the archive to disk.",
        (
            "sheaf restore store site/ --url www.example.org",
            "sheaf restore doi:10.5281/zenodo.7078725 dataset/",
        ),
        "some files could not be restored",
    ),
    Command(
        "obi",
        "keep",
        "Show the history of a template or file in the obi store.",
        ("sheaf obi", "sheaf obi RePEc:aaa:wpaper:1 --as-of 2025-01-01"),
    ),
)

COMMANDS: Mapping[str, Command] = {command.name: command for command in _ROWS}
"""Each command by its name, in the order of the help."""


def overview() -> str:
    """Return all commands in their groups, one line each."""
    lines: list[str] = []
    for group, heading in GROUPS.items():
        lines += ["", f"  {heading}:"] if lines else [f"  {heading}:"]
        summaries: dict[str, str] = {}
        for command in COMMANDS.values():
            family = command.name.partition(" ")[0]
            if command.group == group:
                summaries[family] = FAMILIES[family][1] if family in FAMILIES else command.summary
        lines += [f"    {name:<11}{summary}" for name, summary in summaries.items()]
    more = "`sheaf COMMAND --help` shows its options, exit codes and examples."
    return "\n".join(["commands:", *lines, "", more])


def ending(command: Command) -> str:
    """Return the end of a command's help: its exit codes and examples."""
    codes = [("0", "done")]
    if command.faults:
        codes.append(("1", f"done, but {command.faults}"))
    codes += [
        ("2", "error in usage, configuration or store, with a message of one line"),
        ("130", "interrupted (Ctrl-C); 143: terminated (SIGTERM). Run it again to finish"),
    ]
    lines = ["exit codes:"]
    for code, meaning in codes:
        begin = f"  {code:<5}"
        lines.append(textwrap.fill(meaning, 80, initial_indent=begin, subsequent_indent=" " * 7))
    lines += ["", "examples:" if len(command.examples) > 1 else "example:"]
    return "\n".join([*lines, *(f"  {example}" for example in command.examples)])
