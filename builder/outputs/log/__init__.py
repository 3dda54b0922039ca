"""Signed checkpoints: a log of all snapshots, and proofs that a record was in one or not."""
