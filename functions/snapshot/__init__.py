"""The contract of builder and functions: schema, manifest, pointer, layout, identifiers, URLs.

Everything here is pure: no files, no clock, no third-party packages but msgspec.
"""
