"""The rows of the table of words, from records: of captures and other items, and of templates."""
