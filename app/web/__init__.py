"""Pages for readers, in HTML."""
