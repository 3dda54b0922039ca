"""Surroundings: what a change of a store takes from outside."""

import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime

Clock = Callable[[], datetime]
Advance = Callable[[int], None]
"""Told of rows written since the last call."""
Progress = Callable[[int], AbstractContextManager[Advance]]
"""Given how many rows there are to write, shows how it goes."""


def _unseen(total: int) -> AbstractContextManager[Advance]:
    return nullcontext(lambda rows: None)


def draw_id() -> str:
    """Return a new id for a store: 32 random hexadecimal digits."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Runtime:
    """Time, how to tell of the work and its progress, versions of libraries, threads to use.

    `publisher` is a random text. It tells what this process wrote from what another one did, also
    where both write the same snapshot in the same second.
    `identity` draws the id of a store that has none yet.
    """

    clock: Clock
    sleep: Callable[[float], None]
    say: Callable[[str], None]
    libraries: Mapping[str, str]
    threads: int = 2
    progress: Progress = _unseen
    publisher: str = ""
    identity: Callable[[], str] = draw_id
