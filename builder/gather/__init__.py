"""Gathering: fetches the files that templates refer to, and writes down what came of it."""
