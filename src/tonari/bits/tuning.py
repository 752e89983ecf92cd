"""Tuned numbers of searches of bits: they affect the speed, but no answer."""

# Case: bits hamming-1024, hamming-256 on cpu. Chosen on: not recorded.
QUERY_BLOCK = 64  # few enough that their words stay in the first-level cache beside a group of points
LEAST_BLOCK = 8  # smaller blocks read the points too often; their points are divided among the threads instead
SPARE_PAIRS = 32  # of a query's list beyond 2 k
PACKED_BYTES = 1 << 24  # between two checks for Ctrl-C
SCANNED_WORDS = 1 << 24  # of 16 points, compared between two checks: some tens of milliseconds

# Case: bits hamming-1024 on cuda. Chosen on: not recorded.
BLOCK_ON_CUDA = 4096  # queries at once: unpacked they stay in the second-level cache
PAIRS = 1 << 29  # whose values are held at once
UNPACKED_BYTES = 1 << 30  # most for the unpacked points, and for the unpacked queries
SELECTING_BYTES = 1 << 30  # scratch of a selection: what it keeps of rows, which it takes in blocks
WIDER = 8  # slabs are halved to this many times the queries of a block, then both are
STEP_SECONDS = 2.5e-4  # of launching what compares a block with a slab: about twelve kernels

# Not measured.
LISTED_ENTRIES = 1 << 26  # most entries of padded lists on the device
WIDENING = 1.25  # lists of a launch are at most so much longer than the shortest
