"""Broadsheet: newsletters, delivered from a machine of one's own."""
