"""Strategies: ways to archive the files of a dataset, one module each; `choice` picks one."""
