"""The store's reader: the one part of the store that the functions need."""
