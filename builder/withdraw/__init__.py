"""Withdrawal: `withdraw` replaces items by tombstones and can purge metadata; `reinstate` undoes.

`selection` finds the items that a command names.
"""
