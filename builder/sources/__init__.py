"""Sources: what can be ingested, one folder for each.

`webarchives` holds web archives and their indexes, `redif` trees and tarballs of RePEc, `harvest`
other repositories, `datasets` filesets of platforms, `fulltexts` what templates refer to.
"""
