"""The function of AWS Lambda that serves: its handler is functions.oai.function.handler.

It is made with the execution environment, before the first request, of the variables SHEAF_* over
a sheaf.toml in the zip's root. A request is told of on standard output, by a line of JSON.
"""

import os
import sys
from pathlib import Path

from functions.oai.instance import Instance

_ROOT = Path(__file__).parents[2]


def _write(line: str) -> None:
    # In one piece, for Lambda takes each for an entry of its own.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


handler = Instance(os.environ, Path(os.environ.get("LAMBDA_TASK_ROOT") or _ROOT), _write)
