"""Rendering: answers to XML and HTML by templates."""
