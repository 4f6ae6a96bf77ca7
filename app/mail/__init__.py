"""Writes and sends mail; knows nothing of newsletters."""
