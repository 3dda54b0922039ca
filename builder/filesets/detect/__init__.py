"""Detection of a dataset's platform."""
