"""Datasets as items, from the results of requests for them."""
