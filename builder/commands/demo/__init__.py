"""Demo: every step of Sheaf on sample files, and a harvest of the published result."""
