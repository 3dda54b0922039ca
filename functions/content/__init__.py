"""Content: the archived bytes behind the records, cut out of where they lie by their ranges."""
