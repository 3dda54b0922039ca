"""Read access to the store: folders and S3 buckets."""
