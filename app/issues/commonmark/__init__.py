"""CommonMark as editors write it: the dialect, how it is read into blocks, how blocks are written in it."""
