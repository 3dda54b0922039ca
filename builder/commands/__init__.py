"""The commands of `sheaf`: one module each, with `add` (its arguments) and `run`."""
