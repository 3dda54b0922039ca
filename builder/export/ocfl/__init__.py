"""Exports as an OCFL storage root: its inventories, the root, and what becomes an object."""
