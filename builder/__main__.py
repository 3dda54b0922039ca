"""Where the program begins: it may be interrupted without a word while it imports the rest."""

import atexit
import contextlib
import os
import signal
import sys


def main() -> int:
    """Carry out the command line and return its exit status.

    An interrupt before the work begins, or after it is done, just ends the process.
    """
    _end_by_interrupts()
    _open_standard_streams()
    codes: list[int] = []
    atexit.register(_leave, codes)  # before all others, and so carried out after them
    from builder import cli

    cli.load(sys.argv[1:])
    _raise_interrupts()
    try:
        codes.append(cli.main())
    finally:
        _end_by_interrupts()
    return codes[0]


def _leave(codes: list[int]) -> None:
    """End the process here, if its work came to an end: all is written and removed by now.

    obstore's threads live on after the last request, and nobody can end them. One of them that
    asks for the interpreter while that is taken apart would have the process die by a signal.
    """
    if codes:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # closed, or told of before
                stream.flush()
        os._exit(codes[0])


def _open_standard_streams() -> None:
    """Open what a caller has closed: else a data file gets its number, and messages go into it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)  # workers need them as well
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
