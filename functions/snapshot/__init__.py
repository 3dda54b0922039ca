"""The contract of builder and data provider: schema, manifest, layout, positions, identifiers.

Everything here is pure: no files, no clock, no third-party packages.
"""
