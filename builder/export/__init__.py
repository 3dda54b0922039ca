"""Export of the obi store and of captures in the exchange formats of archives."""
