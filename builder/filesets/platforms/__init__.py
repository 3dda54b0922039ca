"""Platforms that host datasets, one module each.

To add a platform: write a class with the methods of `FilesetPlatformHelper`
(builder.filesets.protocols) in a module here, and add it to PLATFORMS in `detect`.
"""
