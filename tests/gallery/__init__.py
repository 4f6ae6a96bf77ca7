"""Pictures of every mail and of the archive, for the README and for whoever changes how they look."""
