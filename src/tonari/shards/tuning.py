"""Tuned numbers of builds in a directory: sizes of shards and transfers, and numbers of attempts.

Each group of numbers names the benchmark case that measures it (``python -m benchmarks tune shards``), if there is one.
"""

# Case: shards 10m-clusters on cuda. Chosen on: not recorded.
# These numbers determine the overlapping shards of the route "clusters" (routes/dealing.py).
COPIES = 2.2  # expected number of shards that contain a row; the run determines the actual number
MOST_SHARDS = 2 * COPIES  # most shards of equal size to try, as a multiple of n / rows per shard
ROOM = 0.9  # expected rows of a shard, as a share of the rows that fit into memory
SPREAD = 1.05  # the largest shard may exceed its size estimated from the sample by this factor
CENTRES_PER_SHARD = 32  # about; the limits of the total number of centres are:
CENTRES = (64, 2048)
TRAINED = 32  # rows per centre on which k-means is trained
JUDGED = 1 << 15  # smallest sample of rows for estimating the sizes of shards
PIECES = 256  # number of evenly spaced ranges in this sample
NEAR = 8  # a row can be in the shards of this many nearest centres
KMEANS_ROUNDS = 4
AXIS_STEPS = 16  # steps of the power method for the first principal axis
HALVING_STEPS = 4  # steps of a bisection of centres, each across the line between two means
BALANCING_TRIES = 5  # attempts at shards of equal size; each adapts weights to the sizes of the last
FULL = 0.95  # mean size of shards, as a share of the largest size, above which they cannot be balanced
LEAST_CHANGE = 0.25  # an attempt changes weights as if no shard were smaller than this multiple of the mean
MORE_SHARDS = 1.05  # factor on the number of shards if some are too large
MOST_TURNS = 16  # most shards for the rows of one centre, as a multiple of n / rows per shard
MOST_MARGIN = 1.0
LEAST_MARGIN = 0.01  # a margin that would be reduced below this becomes 0, so that shards do not overlap

# Not measured.
# A graph may miss the share 1 - recall of all neighbours. One half of it may be missed because no shard contains both
# points, the other half by the graphs of the shards.
LOST_TO_CUTS = 0.5
LOST_IN_SHARDS = 0.5
KNOWN_OF_A_PAIR = 100  # true neighbours across two slabs that measure their merge
MOST_SAMPLED = 1 << 14  # most rows that are sampled for this
GRAPH_WORK = 2  # progress per row for building the graph of a shard, relative to assigning rows to shards
READ_RATE = 1.5e9  # bytes per second read from files; a guess, for the choice of the route
TRUTH_TASKS = 4  # fewest tasks that search for true neighbours, so that several workers share them
SEGMENT_ROWS = 1 << 25  # rows of the result in a segment, after which the lists of its rows in all shards are removed
TASK_SECONDS = 10.0  # most seconds to build and write a shard on a device, since a killed build repeats it
WRITE_RATE = 1.2e9  # bytes per second that all devices together write to the disk
TRUTH_ROWS = 1 << 26  # most rows of the source that one task compares with the sampled rows
TRIES = 3  # attempts at a task before its error is raised

# Not measured by a case, but by hand on an EPYC (Zen 4): lists of ten neighbours in 15 shards, one thread. Merging by
# blocks of 65,536, 32,768, 16,384, 8,192 and 4,096 rows takes 380, 330, 245, 240 and 275 ns per list.
MERGED_AT_ONCE = 1 << 14  # rows that a thread merges in one step, whose lists fit into a cache
MERGING_THREADS = 16  # more threads only wait for one another in Python

# Not measured by a case, but by hand on an EPYC (Zen 4): zlib computes checksums at 1.3 GB/s per thread, and the system
# writes 42 MB to its cache in 18 to 40 ms and to the disk in 17 to 26 ms.
CHECKED_AT_ONCE = 8 << 20  # fewest bytes whose checksum a thread computes in one step

# Not measured by a case, but by hand on four H100s and 64 cores: 8 million x 96 by 18 shards take 5.0 s on one device,
# 5.3 s on two and 7.1 s on four, and 40 million by 15 shards 13.6, 10.1 and 10.6 s.
SHARED_SECONDS = 0.2  # seconds per shard in Python code, which only one device's thread runs

# Not measured: bounds of memory, and of the time that threads wait for one another.
DEALT_AT_ONCE = 1 << 14  # rows that a thread assigns to shards in one step
RENUMBERED_AT_ONCE = 1 << 18  # rows on a device that are renumbered in one step
TAKEN_AT_ONCE = 1 << 15  # rows that a thread copies in one step
PAIRED = 1 << 13  # sampled neighbours whose shards are compared in one step
SUMMED_BYTES = 4 << 20  # bytes of rows, as float64, that k-means adds up in one step
BLOCK_BYTES = 256 << 20  # largest range of rows in bytes that an object returns in one call
STAGED_BYTES = 64 << 20  # page-locked buffers for copies of rows to a device, in bytes
LOCKED_BYTES = 256 << 20  # largest piece of page-locked memory for rows, in bytes; a power of two
STAGED_SHARE = 4  # at most 1 / STAGED_SHARE of the host's free memory is page-locked for rows
LEAST_ROWS = 256  # fewest rows in a slab or shard
MOST_GROUP = 4  # most slabs in a group; their lists are in memory during comparisons with another group
MOST_BLOCK = 1 << 20  # most rows of the result that a task merges
WAKE_SECONDS = 0.1  # a waiting thread checks for Ctrl-C after this time

# Not measured: rows whose values may have overflowed or underflowed are rare.
READ_AGAIN = 1 << 20  # values of their neighbours that are read again in one step
