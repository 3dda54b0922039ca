"""`sheaf export FORMAT`: one module for each format, with `add` and `run`."""
