"""Records of the snapshots of a store as of a time: pages, look-ups, sets and figures."""
