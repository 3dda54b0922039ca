"""Snapshots as they are written: tables, drafts, commit, expiry and recovery.

`transaction` makes a change the next snapshot, and repeats it if another publish came first;
`commit` moves the pointer. `scratch_tables` declares the tables that a change works with.
functions.snapshot is what a snapshot consists of.
"""
