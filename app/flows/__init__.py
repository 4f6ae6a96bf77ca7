"""Stories that cross rooms: one file, one story."""
