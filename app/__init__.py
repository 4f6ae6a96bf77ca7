"""Broadsheet: a self-hosted newsletter delivery service."""
