"""Which platform a dataset is at."""
