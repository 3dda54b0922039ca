"""The demo's scenario: steps that run commands of `sheaf` and check their output.

Each step adds lines of text, and fields of JSON, to a report.
"""

import json
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any
from urllib.parse import urlsplit

from builder.check.text import rank_failures
from builder.commands.demo import samples, shell
from builder.commands.demo.outline import get_record, outline
from builder.commands.demo.shell import CommandReply, Shell
from builder.errors import UsageError
from builder.store.context import Context
from builder.text import tally
from functions.snapshot.errors import SheafError

_COMMANDS = {
    # The command of each step; the step adds arguments that are known only at run time.
    "captures": ("ingest", "--collection", "demo"),
    "templates": ("ingest",),
    "full texts": ("gather", "--again"),
    "dataset": ("fileset",),
    "publish": ("publish",),
    "status": ("status",),
    "serve": ("serve", "--port"),
    "harvest": ("harvest", "--overlap", "0"),  # one machine has one clock
    "check": ("check",),
    "restore": ("restore", "--convert-links", "--url"),
    "query": ("query",),
}
HOST = "www.example.org"
"""The host of the recorded site that is restored."""
_PAUSE = 2.0
"""Seconds after which a `responseDate`, less the clocks' allowance, is after the publish."""
_INCIDENCES = "SELECT what, kind, id FROM incidence WHERE tist > {} ORDER BY tist, id"
_EXPECTED = ["change tobi", "deletion tobi", "change fobi", "deletion fobi"]


class ScenarioError(SheafError):
    """A command did not do what the demo expects."""


@dataclass(slots=True)
class DemoReport:
    """Results of the steps so far: lines of text, and a JSON document."""

    lines: list[str] = field(default_factory=list)
    document: dict[str, Any] = field(default_factory=dict)

    def add(self, word: str, text: str) -> None:
        """Add a line that begins with a word."""
        self.lines.append(f"  {word:12}{text}")


class Scenario:
    """The steps. Their files are in `folder`; their servers run until `stack` is closed."""

    def __init__(self, context: Context, folder: Path, stack: ExitStack) -> None:
        self.report = DemoReport()
        self._folder, self._stack = folder, stack
        self._context = context
        self._config = folder / "sheaf.toml"
        self._shell = Shell(context, self._config)
        self._web, self._papers = folder / "web", folder / "RePEc"
        self._base = self._oai = ""  # addresses of the web server and of the endpoint

    def play(self, sources: Sequence[str], places: Sequence[str], port: int) -> "Popen[str]":
        """Run all steps, and return the server, which still runs at `port`.

        Without `sources` (archive files in the folders `places`), everything in the demo is shown.
        Raises ScenarioError if a command does not do what is expected, and SheafError as the
        commands do.
        """
        if sources:
            shell.write_settings(self._config, places)
            self._ingest(*sources)
        else:
            self._web.mkdir()
            self._base = self._stack.enter_context(samples.serve_web(self._web))
            samples.write_web(self._web, self._base)
            samples.write_papers(self._papers, self._base)
            crawl = str(samples.CRAWL.parent.resolve())
            shell.write_settings(self._config, [crawl], urlsplit(self._base).port)
            self._ingest(str(samples.CRAWL))
            self._ingest_templates()
            self._archive_dataset()
        self._publish()
        server = self._serve(port)
        if not sources:
            self._context.sleep(_PAUSE)
        self._harvest_all()
        self._check()
        if not sources:
            self._restore()
            self._change()
            self._show_records()
        return server

    def _run(self, step: str, *arguments: object) -> CommandReply:
        """Run the command of a step. Raises ScenarioError if it fails without output."""
        line = [*_COMMANDS[step], *map(str, arguments)]
        reply = self._shell.run(line)
        if reply.code and not reply.documents:
            raise ScenarioError("; ".join(reply.remarks) or f"`sheaf {line[0]}` failed")
        return reply

    def _ingest(self, *sources: str) -> None:
        self._context.say("ingesting ...")
        archives = self._run("captures", *sources).documents[0].get("sources", [])
        captures = sum(source["captures"] for source in archives)
        if not captures:
            raise UsageError("these files have no captures, so the demo has nothing to show")
        skips: Counter[str] = Counter()
        for source in archives:
            skips.update(source["skips"])
        passed = ", ".join(f"{n} {reason}" for reason, n in skips.most_common()) or "none"
        faults = sum(source["faults"] for source in archives)
        self.report.add("captures", f"{captures:,} in {tally(len(archives), 'archive file')}")
        self.report.add("left out", passed)
        self.report.add("faults", str(faults))
        self.report.document |= {"sources": len(archives), "faults": faults}

    def _ingest_templates(self) -> None:
        self._context.say(
            f"ingesting a small RePEc archive, gathering its files from {self._base} ..."
        )
        templates, files = self._take_in()
        self.report.add(
            "templates",
            f"{templates} of a RePEc archive, {tally(files, 'full text')} gathered over HTTP",
        )
        self.report.document["repec"] = {"templates": templates, "files": files}

    def _take_in(self) -> tuple[int, int]:
        """Ingest the RePEc archive and gather its full texts; return the number of new ones."""
        (ingested,) = self._run("templates", self._papers).documents[0]["redif"]
        gathered = self._run("full texts").documents[0]
        return ingested["appearances"], gathered["appearances"]

    def _archive_dataset(self) -> None:
        self._context.say("archiving a dataset from a platform on this machine ...")
        (result,) = self._run("dataset", f"{self._base}{samples.DATASET_RECORD}").documents
        self.report.document["dataset"] = result["status"]
        if result["status"] != "success":
            raise ScenarioError(f"the dataset is {result['status']}: {result['detail']}")
        files = tally(len(result["manifest"]), "file")
        self.report.add("datasets", f"1 of a platform, {files} verified and archived")

    def _publish(self) -> None:
        self._context.say("publishing ...")
        records = self._run("publish").documents[0]["records"]
        snapshot = self._run("status").documents[0]["snapshot"]
        captures = snapshot["kinds"].get("capture", 0)
        self.report.add(
            "published", f"{tally(records, 'record')}: {tally(captures, 'capture')} and others"
        )
        self.report.add("sets", f"{snapshot['sets']:,}")
        counts = {"captures": captures, "records": records, "sets": snapshot["sets"]}
        self.report.document |= counts

    def _serve(self, port: int) -> "Popen[str]":
        document, server = self._stack.enter_context(
            self._shell.serve([*_COMMANDS["serve"], str(port)])
        )
        self._oai = document["oai"]
        self.report.document["oai"] = self._oai
        return server

    def _harvest_all(self) -> None:
        self._context.say(f"harvesting {self._oai} ...")
        began = time.monotonic()
        report = self._harvest()
        seconds = time.monotonic() - began
        harvested, published = report["records"], self.report.document["records"]
        if harvested != published:
            raise ScenarioError(f"{tally(published, 'record')} published, {harvested} harvested")
        self.report.add(
            "harvested",
            f"{tally(harvested, 'record')}, each once, in {tally(report['pages'], 'page')} and "
            f"{seconds:.2f} s over HTTP",
        )
        self.report.document |= {"harvested": harvested, "pages": report["pages"]}

    def _harvest(self) -> Any:
        """Harvest new records since the last time, and return the report."""
        (report,) = self._run("harvest", self._oai, self._folder / "harvest").documents[0]
        if report["status"] != "complete":
            raise ScenarioError(f"{self._oai}: {report['error'] or report['status']}")
        return report

    def _check(self) -> None:
        """Check the endpoint as `sheaf check` does any other."""
        self._context.say(f"checking {self._oai} ...")
        page = self._folder / "check.html"
        report = self._run("check", self._oai, "--html", page).documents[0]
        summary = report["summary"]
        if (failures := rank_failures(report)) and summary["verdict"] != "advice":
            raise ScenarioError(f"{self._oai}: {failures[0]['number']} {failures[0]['title']}")
        requests = tally(len(report["requests"]), "request")
        self.report.add("checked", f"{tally(summary['passed'], 'check')} passed, in {requests}")
        self.report.document["checks"] = summary

    def _restore(self) -> None:
        self._context.say(f"restoring {HOST} ...")
        base = self._oai.removesuffix("/oai")
        target = self._folder / "site"
        report = self._run("restore", HOST, base, target).documents[0]
        names = "restored", "kept", "linked", "converted", "removed", "redirects", "bytes"
        restored = {name: report[name] for name in (*names, "renamed", "missing")}
        page = target / HOST / "index.html"
        if restored["missing"] or not page.is_file():
            raise ScenarioError(f"{page} was not restored correctly")
        files = tally(report["restored"], "file")
        self.report.add("restored", f"{HOST}: {files} verified, with links converted")
        self.report.document["restored"] = restored

    def _change(self) -> None:
        """Change the RePEc archive, publish it again, and harvest the new records."""
        self._context.say("changing the archive and repeating these steps ...")
        before = self._run("status").documents[0]["obi"]["run"]
        samples.revise_papers(self._papers, self._base)
        samples.revise_web(self._web, self._base)
        self._take_in()
        self._run("publish")
        rows = self._run("query", _INCIDENCES.format(before)).documents
        happened = [f"{row['what']} {row['kind']}" for row in rows]
        if happened != _EXPECTED:
            raise ScenarioError(f"expected two changes and two deletions, found: {happened}")
        report = self._harvest()
        if (report["records"], report["deleted"]) != (2, 1):
            raise ScenarioError(
                "expected a changed and a deleted record, harvested "
                f"{tally(report['records'], 'record')}, {report['deleted']} deleted"
            )
        self._report_change(rows, report)

    def _report_change(self, rows: Sequence[Any], report: Any) -> None:
        state = json.loads((Path(report["folder"]) / "harvest.json").read_text("utf-8"))
        since = state["runs"][-1]["since"]
        self.report.lines.append("")
        self.report.add(
            "then",
            "an abstract and a full text changed, a template and a full text deleted:",
        )
        kinds = {"tobi": "template", "fobi": "file"}
        for row in rows:
            self.report.lines.append(f"    {row['what']:10}{kinds[row['kind']]:10}{row['id']}")
        self.report.add(
            "harvested",
            f"{tally(report['records'], 'record')} since {since}, "
            f"{report['deleted']} of them deleted",
        )
        self.report.document["repec"] |= {
            "incidences": [[row["what"], row["kind"], row["id"]] for row in rows],
            "since": since,
            "harvested": report["records"],
            "deleted": report["deleted"],
        }

    def _show_records(self) -> None:
        """Show the changed record in each format, the deleted one, and the dataset's."""
        self.report.lines.append("")
        (row,) = self._run("query", "SELECT identifier FROM filesets").documents
        changed, removed = (
            f"oai:{shell.NAMESPACE}:{x}" for x in (samples.CHANGED_PAPER, samples.REMOVED_PAPER)
        )
        shown = [("changed", changed, name) for name in ("oai_dc", "amf", "redif")]
        shown += [("deleted", removed, "oai_dc"), ("dataset", row["identifier"], "oai_datacite")]
        before = ""
        for word, identifier, prefix in shown:
            header, *rest = outline(get_record(self._oai, identifier, prefix))
            if word != before:
                self.report.add(word, header)
                before = word
            if rest:
                self.report.lines.append(f"  {prefix}")
            self.report.lines += [f"  {line}" for line in rest]
