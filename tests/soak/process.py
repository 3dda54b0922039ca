"""Servers as processes of a soak test: started in a folder, awaited, and killed in the end."""

import contextlib
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 120.0
"""How long a server may take to start, on a busy machine."""


class SkipError(Exception):
    """A store cannot be had here, for the reason given."""


@dataclass(frozen=True)
class Running:
    """A server that was started, and the file with what it prints."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def await_answer(self, url: str) -> None:
        """Wait until the URL is answered, in whatever way. Raises SkipError."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                urllib.request.urlopen(url, timeout=5).close()
                return
            except urllib.error.HTTPError:
                return  # it answers
            except OSError:
                time.sleep(0.2)
        said = self.log.read_text("utf-8", "replace")[-300:]
        raise SkipError(f"the server of {url} does not run: {said}")


@contextmanager
def run_server(
    command: Sequence[str | Path], environment: Mapping[str, str], folder: Path
) -> Iterator[Running]:
    """Run a server as a process group of its own; in the end it is killed."""
    log = folder / f"{Path(command[0]).name}.out"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            env=variables(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield Running(process, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_tool(command: Sequence[str | Path], environment: Mapping[str, str], folder: Path) -> None:
    """Run a command that prepares a server, to its end. Raises SkipError if it fails."""
    try:
        subprocess.run(
            command,
            env=variables(environment),
            cwd=folder,
            timeout=_SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode("utf-8", "replace")[-300:]
        raise SkipError(f"{error}: {said}") from error


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with more, and without what concerns Sheaf and Python."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SHEAF_", "PYTHON"))}
    return {**kept, **environment}
