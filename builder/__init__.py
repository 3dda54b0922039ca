"""What makes snapshots: sources, intake, publish, and the command `sheaf`."""
