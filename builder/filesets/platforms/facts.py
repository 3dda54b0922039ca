"""Facts about a platform for its row in the guide."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlatformFacts:
    """A platform's name, how it is recognised, and notes on what is read, in one line each."""

    name: str
    known_by: str
    notes: str

    @property
    def row(self) -> str:
        """The row of the table of platforms, in Markdown."""
        return f"| `{self.name}` | {self.known_by} | {self.notes} |"
