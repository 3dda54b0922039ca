"""Repositories of one operator or federation, each with an interface of its own."""
