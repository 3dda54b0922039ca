"""Read access to a store in a folder or a bucket. builder.store also writes."""
