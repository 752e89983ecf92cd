"""Judgments of files: what is read, written or compared at a time; they change no answer."""

# Not measured: bounds of memory, large enough that a system call takes next to nothing.
PIECE_BYTES = 8 << 20  # that are read, converted or written at a time
BLOCK_LINES = 1 << 14  # of a table of text that are parsed at a time
CHECKED_ROWS = 1 << 20  # of .fvecs and .bvecs, whose widths are compared at a time

# Not measured: each further try means that another process has just finished a run.
OPENINGS = 100  # of an unfinished file, before that is refused
