"""The members of one section: which one holds a byte, where each ends, and what failed in each."""

from collections import deque

CHECKSUM, COMPRESSION, CUT = "checksum", "compression", "cut"
"""What fails in a member: its checksum or length; its compressed data; or the file ends in it."""


class Section:
    """Offsets of members are raw; those of bytes count what the section's members inflate to."""

    def __init__(self) -> None:
        self.last_member = 0
        """The member that holds the last byte of the record that was closed last."""
        self.last_end: int | None = None
        """The raw end of that member, once another member follows it in this section."""
        self._given = 0
        self._latest = 0
        # Earlier members that the buffer may hold: where each ends, its raw offset, its raw end.
        self._borders: deque[tuple[int, int, int]] = deque()
        self._damages: dict[int, str] = {}

    def begin(self, member: int, size: int) -> None:
        """Begin with a member, of which the first `size` bytes are there."""
        self._latest = member
        self._given = size
        self._borders.clear()
        if self._damages:
            self._damages = {n: code for n, code in self._damages.items() if n >= member}

    def give(self, size: int) -> None:
        """Count further bytes of the member in hand."""
        self._given += size

    def follow(self, member: int, end: int, unread: int) -> None:
        """Go on with another member. The one before has its raw end at `end`."""
        here = self._given - unread
        while self._borders and self._borders[0][0] < here:
            self._borders.popleft()
        if self._latest == self.last_member and self.last_end is None:
            self.last_end = end
        self._borders.append((self._given, self._latest, end))
        self._latest = member

    def holder(self, unread: int) -> int:
        """Return the member that holds the next byte, where `unread` bytes are left."""
        return self._find(self._given - unread)[0]

    def close(self, unread: int) -> None:
        """Note which member holds the byte before the next one."""
        self.last_member, self.last_end = self._find(self._given - unread - 1)

    def fail(self, member: int, code: str) -> None:
        """Note what failed in a member, of this section or behind it."""
        self._damages[member] = code

    def damage(self, first: int, last: int) -> str | None:
        """Return what failed in the members from one to another, None if nothing did."""
        if not self._damages:
            return None
        return next((c for n, c in sorted(self._damages.items()) if first <= n <= last), None)

    def _find(self, at: int) -> tuple[int, int | None]:
        for until, member, end in self._borders:
            if at < until:
                return member, end
        return self._latest, None
