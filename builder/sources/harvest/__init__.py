"""OAI-PMH harvester: copies the records of any OAI-PMH 2.0 repository to disk and updates them."""
