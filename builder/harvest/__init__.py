"""The harvester: any OAI-PMH 2.0 repository's records, kept on disk and brought up to date."""
