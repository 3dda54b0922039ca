"""Checks of any OAI-PMH repository: one visit, judged by a table of checks, and its report."""
