"""Formatting of counted things."""


def tally(number: int, one: str, many: str | None = None) -> str:
    """Return the number with its noun; the plural `many` is `one` with an s unless given."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
