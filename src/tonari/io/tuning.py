"""Tuning constants of file access: sizes of the blocks that are read, written or compared. They change no answer."""

# Not measured: bounds on memory, large enough to make the cost of system calls negligible.
PIECE_BYTES = 8 << 20  # maximum bytes that are read, converted or written in one step
BLOCK_LINES = 1 << 14  # number of lines of a text table that are parsed in one step
CHECKED_ROWS = 1 << 20  # number of rows of a .*vecs file whose widths are compared in one step

# Not measured: a further attempt is needed only if another process removed the file between opening and locking it.
OPENINGS = 100  # number of attempts to open and lock an unfinished file, after which an error is raised

# Not measured: a bound on memory for damaged files; a record takes some hundred bytes.
RECORD_BYTES = 1 << 16  # maximum length in bytes of a record of filters that is read
