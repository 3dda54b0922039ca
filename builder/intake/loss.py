"""Rule of loss: how many items a source may lose at once before somebody has to approve it."""

SHARE, FEW = 5, 10
"""Items that may vanish at once without approval: up to FEW, or one in SHARE."""


def is_held(missing: int, present: int) -> bool:
    """Return whether so many missing items, of those present before, await approval."""
    return missing > FEW and missing * SHARE > present
