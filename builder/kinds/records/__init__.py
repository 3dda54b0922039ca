"""Records of other repositories as items, from harvests."""
