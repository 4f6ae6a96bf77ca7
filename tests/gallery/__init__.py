"""Pictures of every mail and every page for readers, for the README and for whoever changes how they look."""
