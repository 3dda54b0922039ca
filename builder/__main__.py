"""Entry point of `sheaf`. An interrupt during its imports ends the process silently."""

import atexit
import contextlib
import gc
import os
import signal
import sys


def main() -> int:
    """Run the command line and return its exit status.

    An interrupt before the command begins, or after it has ended, just ends the process.
    """
    _end_by_interrupts()
    _open_standard_streams()
    codes: list[int] = []
    atexit.register(_leave, codes)  # registered first, so it runs last
    gc.disable()  # what is imported stays: to search it again and again takes a tenth of the start
    from builder.commands import cli

    cli.load(sys.argv[1:])
    gc.enable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # else the caller ignores interrupts
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        codes.append(cli.main())
    finally:
        _end_by_interrupts()
    return codes[0]


def _leave(codes: list[int]) -> None:
    """End the process here if the command has ended: all files are written and removed by now.

    obstore's threads outlive the last request and cannot be stopped. If one of them asks for the
    interpreter during its shutdown, the process dies by a signal.
    """
    if codes:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # closed, or reported before
                stream.flush()
        os._exit(codes[0])


def _open_standard_streams() -> None:
    """Open standard streams that the caller closed: otherwise messages go to a data file."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)  # workers need them as well
    os.close(number)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


# If the caller ignores interrupts, they stay ignored.
def _end_by_interrupts() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    raise SystemExit(main())
