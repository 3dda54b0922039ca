"""Downloads of dataset files, with verification and resuming."""
