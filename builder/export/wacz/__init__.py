"""WACZ: a part of the archive as one file that can be replayed by itself (WACZ 1.1.1)."""
