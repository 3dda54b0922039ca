"""Withdrawal: replaces items by tombstones, restores them, or purges their metadata."""
