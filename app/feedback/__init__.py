"""The desk for returned mail: what a bounce, a complaint or a webhook says, and what follows from it."""
