"""Delivery of the archived bytes behind the records, and searches for captures."""
