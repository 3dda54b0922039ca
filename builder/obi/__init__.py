"""The obi store: every version of every object of interest, kept for good, and its incidences.

An object of interest (obi) is a template with a handle (a tobi) or a file with a URL (a fobi).
"""
