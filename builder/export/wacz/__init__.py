"""WACZ: a part of the archive as one file that replays by itself (WACZ 1.1.1)."""
