"""Commands of `sheaf` as processes: started, killed, and repeated until they succeed."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.items import NAMESPACE
from tests.soak.plan import Fault
from tests.soak.report import Report

_TRIES = 40
_PATIENCE = 900.0
"""Seconds after which a command counts as one that stands still."""
_FIRST_GUESS = 4.0
"""Seconds that a command takes that was never run."""
_DONE_BEFORE = ("no item matches", "none of these items is")
"""What a repeated command says if it took effect before it was killed."""
_CONFIGURATION = f"""
[repository]
name = "Soak"
namespace = "{NAMESPACE}"
admin_emails = ["soak@example.org"]
[pages]
records = 7
[serve]
retry_seconds = 1
workers = 2
"""


@dataclass
class Site:
    """One store under test: its address, a folder for all else, and what the actors share."""

    address: str
    environment: Mapping[str, str]
    folder: Path
    report: Report
    stop: threading.Event = field(default_factory=threading.Event)
    expiries: list[str] = field(default_factory=list)
    """The beginning and the end of each expiry so far."""
    usual: dict[str, float] = field(default_factory=dict)
    """Seconds that each command took last."""

    def __post_init__(self) -> None:
        self.config.write_text(_CONFIGURATION)

    @property
    def config(self) -> Path:
        return self.folder / "sheaf.toml"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str
    killed: bool = False


@dataclass
class Shell:
    """Runs one actor's commands, with its own clock, cache and folder for scratch files."""

    site: Site
    actor: str

    def __post_init__(self) -> None:
        self.folder = self.site.folder / self.actor
        (self.folder / "tmp").mkdir(parents=True)
        self.clock = self.folder / "clock"
        self.clock.write_text("0")
        self.log = self.folder / "log"

    def start(self, arguments: Sequence[str], limit: int = 0) -> "subprocess.Popen[str]":
        """Start a command."""
        command = [
            sys.executable,
            "-m",
            "tests.soak.command",
            str(self.clock),
            str(limit),
            arguments[0],
            "--config",
            str(self.site.config),
            "--store",
            self.site.address,
            *arguments[1:],
        ]
        environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",  # a full disk would leave short files of it
            **self.site.environment,
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_CACHE_HOME": str(self.folder),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=self.folder,
        )

    def set_clock(self, skew: float) -> None:
        """Change this actor's clock, also that of a command that runs."""
        draft = self.clock.with_suffix(".draft")
        draft.write_text(str(skew))
        draft.rename(self.clock)
        self.site.report.add("clock", self.actor.rstrip("0123456789"))

    def run(self, arguments: Sequence[str], fault: Fault = Fault()) -> Ended:  # noqa: B008
        """Run a command once under a fault."""
        command, report = arguments[0], self.site.report
        began = time.monotonic()
        process = self.start(arguments, fault.limit or 0)
        usual = self.site.usual.get(command, _FIRST_GUESS)
        patience = _PATIENCE if fault.kill is None else fault.kill * usual
        killed = False
        try:
            out, err = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            killed = process.poll() is None
            process.kill()
            out, err = process.communicate()
            if fault.kill is None:
                report.fail(f"`{' '.join(arguments)}` did not end within {_PATIENCE:.0f} s")
        ended = Ended(process.returncode, out, err, killed and process.returncode == -9)
        if ended.code == 0:
            self.site.usual[command] = time.monotonic() - began
        self._note(arguments, ended, fault)
        return ended

    def finish(self, arguments: Sequence[str], fault: Fault, *, repeats: bool = False) -> Ended:
        """Run a command until it succeeds; the fault meets the first attempt.

        `repeats` says that a repeated command may say that there is nothing left to do.
        """
        if fault.skew:
            self.set_clock(fault.skew)
        command, report = arguments[0], self.site.report
        ended = self.run(arguments, fault)
        for _ in range(_TRIES):
            done_before = repeats and any(text in ended.err for text in _DONE_BEFORE)
            if ended.code == 0 or done_before:
                report.add("done", command)
                return ended
            report.add("retry", command)
            if not ended.killed:
                time.sleep(1)
            ended = self.run(arguments)
        report.fail(f"`{' '.join(arguments)}` never succeeded: {ended.err.strip()[-300:]}")
        return ended

    def _note(self, arguments: Sequence[str], ended: Ended, fault: Fault) -> None:
        """Count the faults that met a command, and check how it ended."""
        command, report = arguments[0], self.site.report
        with self.log.open("a") as log:
            log.write(f"{time.time():.1f} {arguments} {fault}: {ended.code}\n{ended.err}\n")
        if ended.killed:
            report.add("kill", command)
        if fault.limit:
            report.add("full disk", command)
            if ended.code not in (0, -9):
                report.add("disk full", command)
        if "Traceback" in ended.err:
            report.fail(f"`{' '.join(arguments)}` ended with a traceback: {ended.err[-600:]}")
        elif not ended.killed and ended.code not in (0, 1, 2):
            said = f"status {ended.code}: {ended.err[-300:]}"
            report.fail(f"`{' '.join(arguments)}` ended with {said}")
