"""Tuned numbers of streams: chunk sizes and waiting times.

The comment above a group names the benchmark cases that time it, and the machine whose timings chose the numbers.
Values in brackets are the alternatives that ``python -m benchmarks tune streams`` times.
"""

# Case: kdtree stream on cpu. Chosen on: an unrecorded machine.
# The size of chunks in searches for the k nearest.
CHUNK_BYTES = 128 << 20  # bytes of queries and results per chunk; the fixed cost of a search is then negligible
FIRST_ROWS = 8192  # number of rows of the first chunk, whose duration shows how fast the search is
GROWTH = 8  # maximum number of rows of a chunk, as a multiple of the number in the previous chunk

# Not measured: limits of the time that a killed process, a slow disk or the caller's code may cost.
CHUNK_SECONDS = 10.0  # maximum seconds per chunk, since a killed process loses one chunk
SYNC_SECONDS = 0.2  # minimum seconds between two waits for the disk; a wait takes milliseconds
PATIENCE_SECONDS = 0.5  # maximum seconds to wait for the end of a thread that runs the caller's code

# Not measured. The size of chunks in radius searches.
RADIUS_FIRST_ROWS = 4_096  # number of rows of the first chunk
RADIUS_MOST_ROWS = 1 << 20  # maximum number of rows per chunk
RADIUS_NEIGHBORS = 1 << 23  # number of neighbours that a chunk of an array is expected to have
