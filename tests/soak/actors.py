"""Actors of a soak test: writers, harvesters, an expiry and a server, each in a thread."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from tests.soak.items import Item, write_tree
from tests.soak.plan import SKEW, Fault, Step, WriterPlan, draw_fault, generator
from tests.soak.shell import Shell, Site

_PAUSE = 1.0
_SERVER_LIFE = (10.0, 40.0)
"""Seconds between two faults of the server."""


class Actor(threading.Thread, ABC):
    """Does one round after another until the site stops. An error is a broken promise."""

    def __init__(self, site: Site, name: str, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.site = site
        self.shell = Shell(site, name)
        self.random = generator(seed, name)

    def run(self) -> None:
        try:
            while not self.site.stop.is_set():
                self.round()
        except Exception as error:  # noqa: BLE001 - told in the report, whatever it is
            self.site.report.fail(f"{self.name} ended: {error!r}")

    @abstractmethod
    def round(self) -> None:
        """Do what is done again and again."""


class SoakWriter(Actor):
    """Ingests, publishes, withdraws and reinstates items of its own, as its plan says."""

    def __init__(self, site: Site, name: str, seed: int) -> None:
        super().__init__(site, name, seed)
        self.plan = WriterPlan(seed, name)
        self.steps = self.plan.steps()
        self.expected: dict[str, Item] = {}
        """Items as the steps that succeeded made them, once all is published."""

    def round(self) -> None:
        """Do the next step, and those that belong to it, up to their success."""
        for step in self.steps:
            repeats = step.command in ("withdraw", "reinstate")
            self.shell.finish(self._arguments(step), step.fault, repeats=repeats)
            self.expected.update({item.identifier: item for item in step.items})
            if not step.goes_on:
                return

    def _arguments(self, step: Step) -> list[str]:
        """Return the command line of a step; its sources are written."""
        given = [step.command, *step.arguments]
        if step.archive is not None:
            given.append(str(step.archive.write(self.shell.folder)))
        if step.papers is not None:
            given.append(str(write_tree(self.shell.folder, self.plan.code, step.papers)))
        return [*given, "--jobs", "1"] if step.command == "ingest" else given


class Expirer(Actor):
    """Retires snapshots as eagerly as it can, and verifies the store in between."""

    def round(self) -> None:
        """Expire, and now and then verify while others write."""
        self.site.expiries.append("begun")
        keep = self.random.randint(1, 3)
        arguments = ["expire", "--keep", str(keep), "--older-than", "0s"]
        self.shell.finish(arguments, draw_fault(self.random))
        self.site.expiries.append("ended")
        if self.random.random() < 0.2:
            ended = self.shell.run(["verify", "--newest"])
            if ended.code == 1:
                self.site.report.fail(f"verify found damage: {ended.out[-500:]}")
        self.site.stop.wait(self.random.uniform(1, 10) * _PAUSE)


@dataclass(frozen=True)
class Habit:
    """How a harvester harvests: formats, and seconds of overlap (None: the default)."""

    prefixes: tuple[str, ...]
    overlap: int | None = None


class SoakHarvester(Actor):
    """Harvests with `sheaf harvest` into a folder: what is new, and sometimes everything."""

    def __init__(self, site: Site, name: str, seed: int, url: str, habit: Habit) -> None:
        super().__init__(site, name, seed)
        self.url, self.habit = url, habit
        self.copy = self.shell.folder / "copy"

    def round(self) -> None:
        """Harvest once."""
        full = self.random.random() < 0.1
        self.harvest(draw_fault(self.random), full=full)
        self.site.stop.wait(self.random.uniform(0, 3) * _PAUSE)

    def harvest(self, fault: Fault, *, full: bool = False) -> None:
        """Harvest until all is complete."""
        prefixes = [part for prefix in self.habit.prefixes for part in ("--prefix", prefix)]
        overlap = [] if self.habit.overlap is None else ["--overlap", str(self.habit.overlap)]
        self.shell.finish(
            [
                "harvest",
                self.url,
                str(self.copy),
                "--format",
                "jsonl",
                "--every",
                "0",
                *prefixes,
                *overlap,
                *(["--full"] if full else []),
            ],
            fault,
        )
        self.site.report.add("harvest", "everything" if full else "what is new")


class Server(Actor):
    """Runs `sheaf serve` with two workers. It is killed, or a worker is, and its clock changes."""

    def __init__(self, site: Site, seed: int, port: int) -> None:
        super().__init__(site, "server", seed)
        self.port = port
        self.process: subprocess.Popen[str] | None = None
        self.ready = threading.Event()

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"http://127.0.0.1:{self.port}/oai"

    def round(self) -> None:
        """Let it live for a while, then let something happen to it."""
        if not self.site.report.counts["done", "publish"]:
            self.site.stop.wait(_PAUSE / 5)  # there is nothing to serve
            return
        if self.process is None:
            self.begin()
            return
        if self.site.stop.wait(self.random.uniform(*_SERVER_LIFE)):
            return
        happens = self.random.choice(["clock", "clock", "worker", "server"])
        if self.process.poll() is not None:
            self.site.report.fail(f"serve ended by itself: {self.process.returncode}")
            self.process = None
        elif happens == "clock":
            self.shell.set_clock(round(self.random.uniform(-SKEW, SKEW), 3))
        else:
            workers = _children(self.process.pid)
            if happens == "worker" and workers:
                with contextlib.suppress(ProcessLookupError):  # it is being replaced
                    os.kill(self.random.choice(workers), signal.SIGKILL)
                    self.site.report.add("kill", "serve (a worker)")
            else:
                self.process.kill()
                self.process.wait()
                self.process = None
                self.site.report.add("kill", "serve")

    def begin(self) -> None:
        """Start it, and wait until it answers; where the store fails it ends again."""
        self.process = self.shell.start(
            [
                "serve",
                "--port",
                str(self.port),
                "--access-log",
                str(self.shell.folder / "access.log"),
            ]
        )
        errors = self.shell.folder / "errors"
        threading.Thread(target=_drain, args=(self.process, errors), daemon=True).start()
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if re.search(r"Ctrl-C ends it", line):
                self.ready.set()
                return
        self.process.wait()
        self.process = None
        time.sleep(_PAUSE)

    def end(self) -> None:
        """End it, as Ctrl-C does."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        errors = (self.shell.folder / "errors").read_text() if self.ready.is_set() else ""
        if "Traceback" in errors:
            self.site.report.fail(f"serve printed a traceback: {errors[-800:]}")


def _drain(process: "subprocess.Popen[str]", path: Path) -> None:
    assert process.stderr is not None
    with path.open("a") as out:
        for line in process.stderr:
            out.write(line)
            out.flush()


def _children(process: int) -> list[int]:
    """Return the workers of a server; none where the system has no /proc."""
    path = Path(f"/proc/{process}/task/{process}/children")
    try:
        numbers = [int(text) for text in path.read_text().split()]
        return [n for n in numbers if b"spawn_main" in Path(f"/proc/{n}/cmdline").read_bytes()]
    except FileNotFoundError:
        return []  # a worker ended meanwhile, or there is no /proc
