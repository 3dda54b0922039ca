"""The data provider: the six verbs of OAI-PMH 2.0 over a snapshot."""
