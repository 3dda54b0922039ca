"""Where the program begins: what it needs is imported here, for which it may be interrupted."""

import signal
from typing import Any


def main() -> int:
    """Carry out the command line and return its exit status.

    An interrupt before the work begins and after it is done ends the process without a word.
    """
    _interrupts(signal.default_int_handler, signal.SIG_DFL)
    from builder import cli

    _interrupts(signal.SIG_DFL, signal.default_int_handler)
    try:
        return cli.main()
    finally:
        _interrupts(signal.default_int_handler, signal.SIG_DFL)


def _interrupts(before: Any, after: Any) -> None:
    """Handle interrupts otherwise; where our caller has them ignored, they stay so."""
    if signal.getsignal(signal.SIGINT) == before:
        signal.signal(signal.SIGINT, after)


if __name__ == "__main__":
    raise SystemExit(main())
