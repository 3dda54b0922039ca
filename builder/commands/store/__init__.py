"""Commands that change a store as a whole."""
