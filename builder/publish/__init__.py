"""Publish: runs of the intake and the newest snapshot in, the next snapshot out."""
