"""Datasets of unknown platforms, which their landing pages describe: links and JSON-LD."""
