"""Tuned numbers of files: sizes of the blocks that are read, written or compared. They change no answer."""

# Not measured: bounds of memory, large enough that a system call takes next to nothing.
PIECE_BYTES = 8 << 20  # bytes that are read, converted or written in one step
BLOCK_LINES = 1 << 14  # lines of a table of text that are parsed in one step
CHECKED_ROWS = 1 << 20  # rows of .fvecs and .bvecs whose widths are compared in one step

# Not measured: each further try means that another process has just finished a run.
OPENINGS = 100  # tries to open an unfinished file before it is refused
