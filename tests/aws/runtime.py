"""The function as AWS runs it: its built artefact, the official emulator, AWS's own loop."""

import contextlib
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as Post
from urllib.request import urlopen

from tests.aws.request import Answer, Kind, Request, answer_of, dumped, http_api
from tests.listening import free_port

HANDLER = "functions.site.function.handler"
TIMEOUT = 28
"""Seconds, as infra/template.yaml has them."""
BARE = Path(sys.prefix) / "runtime" / "bin" / "python"
"""The interpreter that has awslambdaric and nothing else: what the artefact lacks is missing."""


class FunctionError(Exception):
    """The function gave no reply; for the client this is 500 or 502."""


@dataclass
class Runtime:
    """One environment of Lambda; `log` is what the function and the emulator said."""

    url: str
    log: Path
    process: subprocess.Popen[bytes]
    seconds: float = 0.0

    def invoke(self, payload: bytes, patience: float = 60) -> Any:
        """Return the function's reply to a payload. Raises FunctionError."""
        begun = time.monotonic()
        post = Post(f"{self.url}/2015-03-31/functions/function/invocations", data=payload)
        try:
            with urlopen(post, timeout=patience) as reply:
                data = reply.read()
        except HTTPError as error:  # what the emulator says where the function was cut off
            raise FunctionError(f"HTTP {error.code}: {error.read()[:300]!r}") from None
        self.seconds = time.monotonic() - begun
        try:
            found = json.loads(data)
        except ValueError:
            raise FunctionError(data.decode("utf-8", "replace")[:300]) from None
        if isinstance(found, dict) and "errorType" in found:
            raise FunctionError(f"{found['errorType']}: {found.get('errorMessage')}")
        return found

    def ask(self, request: Request, kind: Kind = http_api, **how: Any) -> Answer:
        """Return what a client would get."""
        return answer_of(self.invoke(dumped(kind(request, **how))))

    def said(self) -> str:
        """Return the log; once the emulator is killed, the function tells of that in it."""
        return self.log.read_text("utf-8", "replace")


def emulator() -> Path:
    """Return the official runtime interface emulator, which comes with the SAM CLI."""
    import samcli

    machine = {"x86_64": "x86_64", "aarch64": "arm64"}[platform.machine()]
    return Path(samcli.__file__).parent / "local" / "rapid" / f"aws-lambda-rie-{machine}"


@contextmanager
def running(
    artefact: Path,
    environment: Mapping[str, str],
    folder: Path,
    timeout: int = TIMEOUT,
    handler: str = HANDLER,
) -> Iterator[Runtime]:
    """Run the function, with nothing of this process's environment; `timeout` is in seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / "tmp"
    scratch.mkdir(exist_ok=True)
    outer, inner = free_port(), free_port()
    variables = {
        "PATH": "/usr/bin:/bin",
        "TMPDIR": str(scratch),
        "LAMBDA_TASK_ROOT": str(artefact),
        "PYTHONPATH": str(artefact),
        "PYTHONDONTWRITEBYTECODE": "1",
        "_HANDLER": handler,
        "AWS_LAMBDA_FUNCTION_NAME": "oai",
        "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout),
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
        "AWS_REGION": "us-east-1",
        **environment,
    }
    log = folder / "log"
    command = [
        emulator(),
        "--runtime-interface-emulator-address",
        f"127.0.0.1:{outer}",
        "--runtime-api-address",
        f"127.0.0.1:{inner}",
        BARE,
        "-m",
        "awslambdaric",
        handler,
    ]
    with started(command, variables, artefact, log, lambda: _listens(outer)) as process:
        yield Runtime(f"http://127.0.0.1:{outer}", log, process)


def _listens(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), 1):
        return True


@contextmanager
def started(
    command: Sequence[object],
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    is_ready: Callable[[], object],
) -> Iterator[subprocess.Popen[bytes]]:
    """Run an emulator in a folder until it is ready, and end it with the functions it started."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*map(str, command)],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        end, ready = time.monotonic() + 60, None
        while not ready:
            said = log.read_text("utf-8", "replace")[-500:]
            assert process.poll() is None, f"the emulator ended: {said}"
            assert time.monotonic() < end, f"the emulator does not answer: {said}"
            with contextlib.suppress(OSError):
                ready = is_ready()
            time.sleep(0.05)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
