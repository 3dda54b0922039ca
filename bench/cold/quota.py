"""A share of a processor, as Lambda gives its functions."""

import os
from pathlib import Path

_PERIOD = 20_000  # microseconds, in which a process has its share


class Quota:
    """A share of one processor, by a cgroup of version 1 or 2; without one, by no limit."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._first = False
        for parent, _mark in (
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us"),
            ("/sys/fs/cgroup", "cgroup.procs"),
        ):
            folder = Path(parent) / f"sheaf-bench-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            if (folder / "cpu.cfs_quota_us").exists() or (folder / "cpu.max").exists():
                self.folder, self._first = folder, (folder / "cpu.cfs_quota_us").exists()
                return
            folder.rmdir()

    def set(self, share: float) -> None:
        if self.folder is None:
            return
        quota = int(share * _PERIOD)
        if self._first:
            (self.folder / "cpu.cfs_quota_us").write_text("-1")
            (self.folder / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (self.folder / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self.folder / "cpu.max").write_text(f"{quota} {_PERIOD}")

    def enter(self) -> None:
        """Put this process under the limit: for a child, before it begins."""
        if self.folder is not None:
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def close(self) -> None:
        if self.folder is not None:
            self.folder.rmdir()
