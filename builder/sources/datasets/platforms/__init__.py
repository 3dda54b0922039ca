"""Platforms that host datasets: a module each, and modules for what several of them share.

To add a platform: write a class with the methods of `FilesetPlatformHelper`
(builder.sources.datasets.protocols) in a module here, and add it to PLATFORMS in `detect`. The
first that matches a URL is taken. If anybody can install the platform, add a row to PROBES there
that recognises an installation.
"""
