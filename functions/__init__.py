"""What answers requests: the contract with the builder, the data provider, the store's reader."""
