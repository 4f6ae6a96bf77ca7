"""Hands over what is owed: claims, connections, pace, and what is made of each answer."""
