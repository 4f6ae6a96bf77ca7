def million(sizes, stock): return []
