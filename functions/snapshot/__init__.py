"""The contract between builder and data provider: schema, manifest, layout, positions, identifiers.

Everything here is pure: values in, values out; no file, no clock, no third party.
"""
