"""Stores with which many tests begin: each process makes one once, and then copies it."""

import shutil
import tempfile
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from builder.snapshot import set_listings
from functions.snapshot import layout
from tests.builder.conftest import World

_FOLDER = tempfile.TemporaryDirectory(prefix="sheaf-beginnings-")
"""It goes when the process ends."""


@dataclass(frozen=True)
class _Beginning:
    """A store that is only copied from, the time in it, and how many ingests it has seen."""

    root: Path
    now: datetime
    runs: int


_MADE: dict[Hashable, _Beginning] = {}


def begin(world: World, name: Hashable, fill: Callable[[World], None]) -> None:
    """Bring an empty world to where `fill` brings it; equal names stand for equal fillings.

    How large files are made is a part of what is made, and tests change it.
    """
    sizes = (layout.GROUP_ROWS, layout.FILE_GROUPS, layout.LEAF_FILES, set_listings.SPREAD)
    key = (name, world.clock.now, sizes)
    if key not in _MADE:
        fill(world)
        root = Path(_FOLDER.name) / str(len(_MADE))
        shutil.copytree(world.root, root)
        _MADE[key] = _Beginning(root, world.clock.now, world.runs)
        return
    made = _MADE[key]
    shutil.copytree(made.root, world.root)
    world.clock.now, world.runs = made.now, made.runs
