"""The configuration: keys, values and what each may be."""
