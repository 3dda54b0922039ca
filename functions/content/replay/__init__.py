"""Replay of archived pages without scripts: their references lead to the archive."""
