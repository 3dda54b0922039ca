"""Publish: merges the intake and the obi store into the newest snapshot, and commits the next one.

What a publish does for each kind of item is in builder.kinds.
"""
