"""The configuration: its keys and their valid values."""
