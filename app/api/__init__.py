"""Calls for editors and machines, in JSON: one FastAPI application, mounted under /api/v1."""
