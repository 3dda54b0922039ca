"""`sheaf export FORMAT`: a file for each format, each with `add` and `run`."""
