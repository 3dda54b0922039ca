"""The gzip members or zstd frames of one section: their positions, their ends and their damage."""

from collections import deque

CHECKSUM, COMPRESSION, CUT = "checksum", "compression", "cut"
"""The damage of a member: its checksum or length; its compressed data; the file ends in it."""


class Section:
    """The members of a section. Offsets of members are raw; others count decompressed bytes."""

    def __init__(self) -> None:
        self.last_member = 0
        """The member with the last byte of the record that was closed last."""
        self.last_end: int | None = None
        """The raw end of that member, once another member follows in this section."""
        self._given = 0
        self._latest = 0
        # Earlier members that the buffer may hold: where each ends, its raw offset, its raw end.
        self._borders: deque[tuple[int, int, int]] = deque()
        self._damages: dict[int, str] = {}

    def begin(self, member: int, size: int) -> None:
        """Begin with a member whose first `size` bytes are buffered."""
        self._latest = member
        self._given = size
        self._borders.clear()
        if self._damages:
            self._damages = {n: code for n, code in self._damages.items() if n >= member}

    def give(self, size: int) -> None:
        """Count further bytes of the open member."""
        self._given += size

    def follow(self, member: int, end: int, unread: int) -> None:
        """Continue with another member. The previous one ends at the raw offset `end`."""
        here = self._given - unread
        while self._borders and self._borders[0][0] < here:
            self._borders.popleft()
        if self._latest == self.last_member and self.last_end is None:
            self.last_end = end
        self._borders.append((self._given, self._latest, end))
        self._latest = member

    def holder(self, unread: int) -> int:
        """Return the member with the next byte; `unread` bytes are buffered."""
        return self._find(self._given - unread)[0]

    def close(self, unread: int) -> None:
        """Record the member and end of the byte before the next one."""
        self.last_member, self.last_end = self._find(self._given - unread - 1)

    def fail(self, member: int, code: str) -> None:
        """Record the damage of a member of this section or behind it."""
        self._damages[member] = code

    def damage(self, first: int, last: int) -> str | None:
        """Return the damage of members `first` to `last`, None if they are sound."""
        if not self._damages:
            return None
        return next((c for n, c in sorted(self._damages.items()) if first <= n <= last), None)

    def _find(self, at: int) -> tuple[int, int | None]:
        for until, member, end in self._borders:
            if at < until:
                return member, end
        return self._latest, None
