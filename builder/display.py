"""Tallies: numbers of things, as a person reads them."""


def tally(number: int, one: str, many: str | None = None) -> str:
    """Return the number with what it counts; `many` is `one` with an s unless given."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
