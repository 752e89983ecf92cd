"""Tuned numbers of streams: chunk sizes and waiting times."""

# Case: kdtree stream on cpu. Chosen on: not recorded.
CHUNK_BYTES = 128 << 20  # bytes of queries and results: a search's fixed cost is then negligible, as is memory
FIRST_ROWS = 8192  # rows of the first chunk, which shows how slow a search is
GROWTH = 8  # largest ratio of the size of a chunk to that of the last one

# Not measured: what a killed process, a slow disk or the caller's code may take.
CHUNK_SECONDS = 10.0  # a killed process loses a chunk, so slow searches have small ones
SYNC_SECONDS = 0.2  # small chunks are synchronised together: each wait for the disk takes milliseconds
PATIENCE_SECONDS = 0.5  # longest wait for the caller's code; then its thread is abandoned

# Not measured.
RADIUS_FIRST_ROWS = 4_096
RADIUS_MOST_ROWS = 1 << 20
RADIUS_NEIGHBORS = 1 << 23  # neighbours in a chunk of an array, about
