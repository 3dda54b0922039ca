"""Upgrade: brings a store of an earlier release to the present schema.

Nothing is overwritten but the pointer. Each kept snapshot gets a second manifest and new views
beside the first ones, with new leaves, and with new data files where columns were added. Then one
conditional write of the pointer makes all of them count. Earlier releases refuse that pointer.
Runs of the intake and of the obi store follow.

For a new schema, raise `errors.VERSION`, and say in `documents` what earlier documents lack. A
column that data files lack becomes NULL.
"""
