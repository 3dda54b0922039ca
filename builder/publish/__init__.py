"""Publish: merges the intake and the obi store into the newest snapshot, and commits the next one.

One module for each kind of item: captures, collections, templates, filesets, harvested. `revisits`
gives revisits the values of their originals. The modules share the tables that
builder.snapshot.scratch_tables declares.
"""
