"""Collections as items: their documents count the captures in them."""
