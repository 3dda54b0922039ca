"""Injected dependencies of a change of a store."""

import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime

Clock = Callable[[], datetime]
Advance = Callable[[int], None]
"""Called with the number of rows or bytes since the last call."""
Progress = Callable[[int], AbstractContextManager[Advance]]
"""Opens a progress bar for a total number of rows or bytes."""


def draw_id() -> str:
    """Return a new id for a store: 32 random hexadecimal digits."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Runtime:
    """Clock, messages, progress, versions of libraries, and the number of threads.

    `publisher` is a random text. It distinguishes the objects of this process from those of another
    one that writes the same snapshot in the same second.
    `identity` draws the id of a store that has none.
    """

    clock: Clock
    sleep: Callable[[float], None]
    say: Callable[[str], None]
    libraries: Mapping[str, str]
    threads: int = 2
    progress: Progress = lambda total: nullcontext(lambda rows: None)
    publisher: str = ""
    identity: Callable[[], str] = draw_id
