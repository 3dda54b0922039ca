"""Tests of the reading of web archives."""
