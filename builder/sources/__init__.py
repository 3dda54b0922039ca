"""Sources: a stream of bytes in, captures and faults out. No paths, no store, no clock."""
