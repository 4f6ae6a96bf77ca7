"""Every fault that a sender must survive, done to real programs on real databases, and the accounts after each."""
