"""Filesets: requests for datasets in, verified files in the store and results out."""
