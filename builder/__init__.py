"""Creates and publishes snapshots, and the command `sheaf`. Uses `functions`, never the reverse.

Data come in by `ingest` (web archives), `redif` (RePEc), `harvest` (other repositories) and
`filesets` (datasets). `gather` fetches full texts for RePEc. Ingested rows wait in the `intake`, or
in the `obi` store, until `publish` makes the next snapshot.
"""
