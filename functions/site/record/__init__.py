"""The page of a record: its fields, files, citation, commands, and data for machines."""
