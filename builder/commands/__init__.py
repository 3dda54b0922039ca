"""The commands of `sheaf`: one file each, with `add` (its arguments) and `run` (what it does)."""
