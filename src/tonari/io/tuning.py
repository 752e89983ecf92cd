"""Tuning constants of file access: sizes of the blocks that are read, written or compared. They change no answer."""

# Not measured: bounds on memory, large enough to make the cost of system calls negligible.
PIECE_BYTES = 8 << 20  # bytes that are read, converted or written in one step
BLOCK_LINES = 1 << 14  # lines of a text table that are parsed in one step
CHECKED_ROWS = 1 << 20  # rows of .*vecs files whose widths are compared in one step

# Not measured: a further attempt is needed only if another process removed the file between opening and locking it.
OPENINGS = 100  # attempts to open and lock an unfinished file before an error is raised

# Not measured: a bound on memory for damaged files; a record takes some hundred bytes.
RECORD_BYTES = 1 << 16  # largest accepted length in bytes of a record of filters
