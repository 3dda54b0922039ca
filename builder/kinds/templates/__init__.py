"""Templates of RePEc as items, from the runs of the obi store."""
