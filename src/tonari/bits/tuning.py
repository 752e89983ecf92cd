"""Tuned numbers of searches of bits: they affect the speed, but no answer."""

# Case: bits hamming-1024, hamming-256 on cpu. Chosen on: not recorded.
QUERY_BLOCK = 64  # queries per task, so few that their words and a group of points fit in the first-level cache
LEAST_BLOCK = 8  # smaller blocks read the points too often; their points are divided among the threads instead
SPARE_PAIRS = 32  # entries of a query's list beyond 2 k
PACKED_BYTES = 1 << 24  # bytes packed between two checks for Ctrl-C
SCANNED_WORDS = 1 << 24  # words of 16 points compared between two checks: some tens of milliseconds

# Case: bits hamming-1024 on cuda. Chosen on: not recorded.
BLOCK_ON_CUDA = 4096  # queries at once: when unpacked, they stay in the second-level cache
PAIRS = 1 << 29  # pairs whose values are in memory at once
UNPACKED_BYTES = 1 << 30  # most bytes of the unpacked points, and of the unpacked queries
SELECTING_BYTES = 1 << 30  # scratch of a selection, which processes rows in blocks
WIDER = 8  # slabs are halved until they have this many times the queries of a block; then both are halved
STEP_SECONDS = 2.5e-4  # seconds of launching the comparison of a block with a slab: about twelve kernels

# Not measured.
LISTED_ENTRIES = 1 << 26  # most entries of padded lists on the device
WIDENING = 1.25  # longest list of a launch, relative to the shortest
