"""What platforms say of a dataset, in DataCite's terms."""
