"""Where the program begins: it may be interrupted without a word while it imports the rest."""

import os
import signal
import sys


def main() -> int:
    """Carry out the command line and return its exit status.

    An interrupt before the work begins, or after it is done, just ends the process.
    """
    _end_by_interrupts()
    _open_standard_streams()
    from builder import cli

    _raise_interrupts()
    try:
        return cli.main()
    finally:
        _end_by_interrupts()


def _open_standard_streams() -> None:
    """Open what a caller has closed: else a data file gets its number, and messages go into it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


# Where a caller has interrupts ignored, they stay so.
def _end_by_interrupts() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _raise_interrupts() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    raise SystemExit(main())
