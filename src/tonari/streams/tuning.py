"""Tuned numbers of streams: chunk sizes and waiting times.

The comment above a group names the benchmark cases that time it, and the machine that its numbers were chosen on.
Values in brackets are the alternatives that ``python -m benchmarks tune streams`` times.
"""

# Case: kdtree stream on cpu. Chosen on: not recorded.
# The size of chunks in searches for the k nearest.
CHUNK_BYTES = 128 << 20  # bytes of queries and results in a chunk: the fixed cost of a search is then negligible
FIRST_ROWS = 8192  # rows of the first chunk, which shows how slow a search is
GROWTH = 8  # most rows of a chunk, as a multiple of the rows of the last one

# Not measured: limits of the time that a killed process, a slow disk or the caller's code may cost.
CHUNK_SECONDS = 10.0  # seconds per chunk: a killed process loses a chunk, so slow searches have small chunks
SYNC_SECONDS = 0.2  # small chunks wait for the disk together, because each wait takes milliseconds
PATIENCE_SECONDS = 0.5  # longest wait for the caller's code, whose thread is then abandoned

# Not measured. The size of chunks in radius searches.
RADIUS_FIRST_ROWS = 4_096
RADIUS_MOST_ROWS = 1 << 20
RADIUS_NEIGHBORS = 1 << 23  # about this many neighbours in a chunk of an array
