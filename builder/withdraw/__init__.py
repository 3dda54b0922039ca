"""Withdrawal: records are taken out of harvests, put back, or deleted for good."""
