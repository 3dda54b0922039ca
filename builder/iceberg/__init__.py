"""Tables of Iceberg and DuckLake over the data files: metadata alone, no row is copied.

`update` brings the tables to the newest snapshot. `table` lists them and their columns, `deletes`
finds superseded rows, `avro` writes manifests, `ducklake` the catalogue of DuckLake, and `index` is
the state between publishes.
"""
