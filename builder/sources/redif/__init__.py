"""The ingest of ReDIF: trees and tarballs of RePEc in, a run of the obi store out."""
