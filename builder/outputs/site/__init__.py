"""The site: all answers of OAI-PMH as files, for hosts that run no code of Sheaf."""
