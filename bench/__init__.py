"""How fast it is on this machine: `make bench`, or `python -m bench sending` for one of them."""
