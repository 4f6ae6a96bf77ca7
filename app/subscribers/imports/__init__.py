"""Readers that come from a file: one module a format."""
