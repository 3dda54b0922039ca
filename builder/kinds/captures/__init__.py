"""Captures of web pages as items: copies are united, and revisits find their originals."""
