"""Archive files that are not on this machine: how they are found and opened, by scheme."""
