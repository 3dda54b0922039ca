"""Table of commands: names, groups, summaries, examples, and the help text made of them.

Their arguments are rows of a table, too: what the usage shows, and what it means.
"""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

    @property
    def module(self) -> str:
        """Name of the module with `add` and `run`, or for subcommands with their table."""
        return f"builder.commands.{self.group}.{self.name.partition(' ')[0]}"


FAMILIES = {"export": ("FORMAT", "keep", "Write the store's content in other formats.")}
"""Commands with subcommands: the noun for these, group and summary.

The command's module has the table SUBCOMMANDS, whose values have `add` and `run`.
"""

_UNHAD = "some captures could not be read"
_ELSEWHERE = "files of datasets are at archive.org, and not in the store"

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
        "publish",
        "make",
        "Publish the ingested data as the next snapshot.",
        ("sheaf publish", "sheaf publish --json"),
        writes=True,
    ),
    Command(
        "serve",
        "serve",
        "Serve OAI-PMH at /oai and pages for people at /.",
        ("sheaf serve", "sheaf serve --port 0 --content"),
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
    Command(
        "export ocfl",
        "keep",
        "Write templates, files and datasets with all their versions as OCFL 1.1 objects.",
        ("sheaf export ocfl /archive/ocfl",),
        _ELSEWHERE,
    ),
    Command(
        "export bagit",
        "keep",
        "Write a BagIt bag for each run, and each version of a dataset.",
        ("sheaf export bagit /archive/bags", "sheaf export bagit bags --set platform:zenodo"),
        _ELSEWHERE,
    ),
    Command(
        "export rocrate",
        "keep",
        "Write a folder with an RO-Crate for each version of a dataset.",
        ("sheaf export rocrate crates/ --dataset 10.5281/zenodo.7078725",),
        _ELSEWHERE,
    ),
    Command(
        "export warc",
        "keep",
        "Write gathered files as WARC/1.1.",
        ("sheaf export warc /archive/warc", "sheaf export warc all.warc.gz"),
    ),
    Command(
        "export wacz",
        "keep",
        "Write captures as one WACZ file, for replay.",
        ("sheaf export wacz site.wacz --set domain:org:example --title 'A site'",),
        _UNHAD,
    ),
    Command(
        "export cdxj",
        "keep",
        "Write an index of captures as CDXJ.",
        ("sheaf export cdxj all.cdxj.gz --where 'fetch_status = 200'",),
        _UNHAD,
    ),
    Command(
        "export parquet",
        "keep",
        "Write a view as Parquet with large row groups, described by croissant.json.",
        ("sheaf export parquet captures/", "sheaf export parquet templates/ --view templates"),
    ),
    Command(
        "export jsonl",
        "keep",
        "Write records as JSON lines: all, or what changed since a snapshot.",
        ("sheaf export jsonl all/", "sheaf export jsonl changes/ --since 41 --set mime:text"),
    ),
    Command(
        "export oai",
        "keep",
        "Write records as OAI-PMH documents: all, or what changed since a snapshot.",
        ("sheaf export oai dc/", "sheaf export oai mods/ --format mods --since 2026-11-22"),
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
        said: dict[str, str] = {}
        for command in COMMANDS.values():
            family = command.name.partition(" ")[0]
            if command.group == group:
                said[family] = FAMILIES[family][2] if family in FAMILIES else command.summary
        lines += [f"    {name:<11}{summary}" for name, summary in said.items()]
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


_TYPES = {"N": int, "TIST": int, "MB": int, "BYTES": int, "PORT": int, "PERCENT": float}
"""Types of values by their placeholders; other values are texts."""


def declare(parser: Any, rows: Mapping[str, str], **more: Mapping[str, Any]) -> None:
    """Declare arguments by rows such as `--limit N`, each with its meaning.

    `[N]` may be left out, and `N...` may be given more than once: its values are a list. Behind
    `as` is the name of the attribute. `more` has further parameters of add_argument, by attribute.
    """
    for row, meaning in rows.items():
        usage, _, attribute = row.partition(" as ")
        names, _, value = usage.partition(" ")
        is_option, is_optional, is_list = names[0] == "-", value[:1] == "[", value[-3:] == "..."
        named: dict[str, Any] = {"help": meaning}
        if attribute:
            named["dest"] = attribute
        if value:
            named["metavar"] = value.removesuffix("...").strip("[]")
            named["type"] = _TYPES.get(named["metavar"])
        elif is_option:
            named["action"] = "store_true"
        if is_option and is_list:
            named |= {"action": "append", "default": []}
        elif is_list:
            named["nargs"] = "*" if is_optional else "+"
        if is_optional and not (is_list and not is_option):
            named["nargs"] = "?"
        dest = attribute or names.rpartition(",")[2].lstrip("-").replace("-", "_")
        parser.add_argument(*names.split(","), **{**named, **more.get(dest, {})})
