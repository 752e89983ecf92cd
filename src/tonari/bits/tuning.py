"""Tuning constants of searches among rows of bits: they affect the speed, but no answer."""

# Case: bits hamming-1024, hamming-256 on cpu. Chosen on: an unrecorded machine.
QUERY_BLOCK = 64  # queries per task, few enough for their words and a group of points to fit in the first-level cache
LEAST_BLOCK = 8  # minimum number of queries in a block; if there are fewer, threads share the points instead
SPARE_PAIRS = 32  # entries of a query's list beyond 2 k
PACKED_BYTES = 1 << 24  # bytes packed between two tests for Ctrl-C
SCANNED_WORDS = 1 << 24  # words of 16 points that are compared between two tests for Ctrl-C: some tens of milliseconds

# Case: bits hamming-1024 on cuda. Chosen on: an unrecorded machine.
BLOCK_ON_CUDA = 4096  # maximum number of queries in a block, which stay in the second-level cache when unpacked
PAIRS = 1 << 29  # maximum number of pairs whose values are in memory at once
UNPACKED_BYTES = 1 << 30  # maximum bytes of the unpacked points, and of the unpacked queries
SELECTING_BYTES = 1 << 30  # scratch memory of a selection, which processes rows in blocks
WIDER = 8  # if memory is short, slabs are halved down to this multiple of a block's rows, then slabs and blocks
STEP_SECONDS = 2.5e-4  # seconds to launch the comparison of a block with a slab: about twelve kernels

# Not measured.
LISTED_ENTRIES = 1 << 26  # maximum number of entries of padded lists on the device
WIDENING = 1.25  # the longest list of a launch, relative to the shortest
