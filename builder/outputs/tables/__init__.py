"""Tables of Iceberg over the data files: metadata alone, no row is copied.

`update` brings the tables to the newest snapshot. `table` lists them and their columns, `deletes`
finds superseded rows, `avro` writes manifests, and `index` is the state between publishes.
"""
