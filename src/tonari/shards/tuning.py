"""Tuned numbers of builds in a directory: sizes of shards and transfers, and numbers of attempts.

Each group of numbers names the benchmark case that measures it (``python -m benchmarks tune shards``), if there is one.
"""

# Case: shards 10m-clusters on cuda. Chosen on: an unrecorded machine.
# These numbers determine the overlapping shards of the route "clusters" (routes/dealing.py).
COPIES = 2.2  # mean number of shards per row that a plan expects; the build determines the actual number
MOST_SHARDS = 2 * COPIES  # maximum number of equally large shards to try, as a multiple of n / rows per shard
ROOM = 0.9  # expected rows of a shard, as a share of the rows that fit into memory
SPREAD = 1.05  # maximum expected ratio of a shard's actual size to the size estimated from a sample
CENTRES_PER_SHARD = 32  # centres per shard, within the limits of CENTRES
CENTRES = (64, 2048)  # minimum and maximum number of centres of all shards together
TRAINED = 32  # rows per centre on which k-means is trained
JUDGED = 1 << 15  # minimum number of sampled rows that estimate the sizes of shards
PIECES = 256  # number of evenly spaced ranges of rows in a sample for centres or sizes
NEAR = 8  # number of nearest centres of a row whose shards may contain it
KMEANS_ROUNDS = 4
AXIS_STEPS = 16  # steps of the power method for the first principal axis
HALVING_STEPS = 4  # steps that improve a bisection of centres; each cuts across the line between the two means
BALANCING_TRIES = 5  # attempts at shards of equal size; each adapts the centres' weights to the previous sizes
FULL = 0.95  # balancing ends when the mean size of the shards exceeds this share of the largest allowed size
LEAST_CHANGE = 0.25  # an attempt multiplies weights by the root of a shard's relative size, but at least by this
MORE_SHARDS = 1.05  # factor by which the number of shards grows if some shards are too large
MOST_TURNS = 16  # maximum number of shards that share the rows of one centre, as a multiple of n / rows per shard
MOST_MARGIN = 1.0  # largest margin, in units of the distance between two centres
LEAST_MARGIN = 0.01  # smallest positive margin; a smaller one is replaced by 0, so that shards do not overlap

# Not measured.
# A graph may miss the share 1 - recall of all neighbours. One half of this share may be missed because the two points
# are in no common shard, the other half by the graphs of the shards.
LOST_TO_CUTS = 0.5
LOST_IN_SHARDS = 0.5
KNOWN_OF_A_PAIR = 100  # number of true neighbours across two slabs from which the recall of their merge is measured
MOST_SAMPLED = 1 << 14  # maximum number of rows that are sampled to measure the recall of merges
GRAPH_WORK = 2  # progress counted per row of a shard whose graph is built; assigning a row to shards counts 1
READ_RATE = 1.5e9  # assumed speed of reading files, in bytes per second; for the choice of the route
TRUTH_TASKS = 4  # minimum number of tasks for the search for true neighbours, so that several workers share it
SEGMENT_ROWS = 1 << 25  # rows of the result in a segment; when they are merged, their parts of the shards are removed
TASK_SECONDS = 10.0  # maximum seconds to build and write a shard on a device, because a killed build repeats it
WRITE_RATE = 1.2e9  # bytes per second that all devices together write to the disk
TRUTH_ROWS = 1 << 26  # maximum number of rows of the source that one task compares with the sampled rows
TRIES = 3  # number of attempts at a task, after which its error is raised

# Not measured by a case, but by hand on an EPYC (Zen 4): lists of ten neighbours in 15 shards, one thread. Merging by
# blocks of 65,536, 32,768, 16,384, 8,192 and 4,096 rows takes 380, 330, 245, 240 and 275 ns per list.
MERGED_AT_ONCE = 1 << 14  # rows whose lists a thread merges in one step; the lists fit into a cache
MERGING_THREADS = 16  # maximum threads that merge lists; more would only wait for the interpreter's lock

# Not measured by a case, but by hand on an EPYC (Zen 4): zlib computes checksums at 1.3 GB/s per thread, and the system
# writes 42 MB to its cache in 18 to 40 ms and to the disk in 17 to 26 ms.
CHECKED_AT_ONCE = 8 << 20  # minimum number of bytes whose checksum a thread computes in one step

# Not measured by a case, but by hand on four H100s and 64 cores: 8 million x 96 by 18 shards take 5.0 s on one device,
# 5.3 s on two and 7.1 s on four, and 40 million by 15 shards 13.6, 10.1 and 10.6 s.
SHARED_SECONDS = 0.2  # seconds of Python code per shard, which devices' threads cannot run at the same time

# Not measured: bounds of memory, and of the time that threads wait for one another.
DEALT_AT_ONCE = 1 << 14  # rows that a thread assigns to shards in one step
RENUMBERED_AT_ONCE = 1 << 18  # number of list rows on a device that are renumbered in one step
TAKEN_AT_ONCE = 1 << 15  # rows that a thread copies in one step
PAIRED = 1 << 13  # pairs (sampled row, true neighbour) whose shards are compared in one step
CHANGED_BYTES = 4 << 20  # maximum bytes of original and transformed rows in one step, both counted as float64
SUMMED_BYTES = 4 << 20  # bytes of the float64 rows that k-means adds up in one step
BLOCK_BYTES = 256 << 20  # maximum bytes of the rows that are requested from a caller's object in one call
STAGED_BYTES = 64 << 20  # bytes of each page-locked buffer through which rows are copied to a device
LOCKED_BYTES = 256 << 20  # maximum bytes of one piece of page-locked memory for rows; a power of two
STAGED_SHARE = 4  # at most 1 / STAGED_SHARE of the host's free memory is page-locked for rows
LEAST_ROWS = 256  # minimum number of rows in a slab or shard
MOST_GROUP = 4  # maximum number of slabs in a group; the lists of two groups are in memory while they are compared
MOST_BLOCK = 1 << 20  # maximum number of rows of the result that one task merges
WAKE_SECONDS = 0.1  # seconds after which a waiting thread checks for Ctrl-C

# Not measured: rows whose values may have overflowed or underflowed are rare.
READ_AGAIN = 1 << 20  # values (rows x columns) that are read again in one step, to decide whether a distance overflowed
