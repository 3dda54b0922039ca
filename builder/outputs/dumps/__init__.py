"""Dumps: all records of a snapshot as files, complete or as the difference to an earlier one.

Readers need no engine: a dump is JSON lines or OAI-PMH documents, compressed, in parts of bounded
size, with a manifest of their digests.
"""
