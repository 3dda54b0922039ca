"""Creates and publishes snapshots: sources, intake, publish, and the command `sheaf`."""
