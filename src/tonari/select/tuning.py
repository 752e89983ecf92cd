"""Tuned numbers of k-selection: they affect its speed, but no answer.

The comment above a group names the benchmark cases that time it, and the machine that its numbers were chosen on.
Values in brackets are the alternatives that ``python -m benchmarks tune select`` times.
"""

# Case: select bars-8192x32768-k64 on cpu. Chosen on: one thread with AVX-512, not recorded which.
# The expected time of a selection on one thread, which decides the number of threads.
ROW_SECONDS = 1e-6  # seconds of one thread for each row, whatever its length
VALUE_SECONDS = 5e-10  # seconds of one thread for each value of a row
SELECTED_SECONDS = 7e-9  # seconds of one thread for each selected value
QUEUE_TIMES = 4.0  # time of the methods with queues, relative to that of the other methods

# Case: select bars-100000x50-k10, bars-1000000x20-k5 on cpu. Chosen on: one thread of an EPYC (Zen 4), 2026-11-28.
# The expected time of a selection from short rows on one thread; method "bitonic" sorts such rows side by side.
SHORT_ROW_BYTES = 1 << 10  # a row is short if its keys have at most this many bytes [1 << 9, 1 << 10, 1 << 11]
SHORT_ROW_SECONDS = 1e-8  # seconds of one thread for each short row, without those for its values
SHORT_VALUE_SECONDS = 1.1e-9  # seconds of one thread for each value of a short row
SHORT_SELECTED_SECONDS = 2e-9  # seconds of one thread for each value selected from a short row

# Case: select bars-8192x32768-k64, bars-8192x32768-k1024 on cpu. Chosen on: an unrecorded machine.
# The size of a chunk of rows, which one thread selects from in one native call.
SLICE_SECONDS = 0.02  # duration of one native call: Ctrl-C takes effect after it [0.005, 0.02, 0.08]
FIRST_VALUES = 1 << 17  # values in a thread's first chunk, which takes tens of µs to ms [1 << 15, 1 << 17, 1 << 19]

# Not measured: bounds of time and memory.
MOST_VALUES = 1 << 28  # maximum number of values in one native call: it takes a quarter of a second at memory bandwidth
MERGE_BLOCK = 1 << 20  # candidates that are merged in one step, so that temporaries stay near 50 MB

# Not measured: no case has so few rows.
# If there are fewer groups of rows than threads, the columns are cut into parts.
LEAST_PART = 1 << 16  # minimum columns of a part: with shorter parts, the second selection costs too much
PART_OVER_K = 8  # minimum columns of a part as a multiple of k, so that few candidates reach the second selection

# Case: select topk on cuda. Chosen on: an unrecorded machine.
# In smaller inputs, kernel launches take most of the time.
FEW_VALUES = 1 << 21  # an input of at most this many values is read several times in the time of one launch

# Case: select bars-2048x131072-k10, bars-16x16777216-k1024 on cuda. Chosen on: an unrecorded machine.
# Method "threshold" on a GPU: the sample of a row, and the compaction of its survivors.
DEVIATIONS = 4.5  # z, in standard deviations of the number of survivors: margin of rank and capacity [4.0, 4.5, 5.0]
SAMPLE_RUN = 8  # adjacent values per sample: one 32-byte sector of float32 [4, 8, 16]
LARGEST_SAMPLE = 4096  # maximum number of samples per program [2048, 4096, 8192]
SAMPLE_WARPS = 2
LARGEST_RESIDENT = 4096  # maximum length of a row that one program holds in registers, and answers without a sample
COMPACT_WARPS = 1  # warps of a program that compacts: one warp needs no synchronization and few registers [1, 2, 4]
COMPACT_THREAD_BYTES = 32  # bytes that a thread loads at once during compaction [16, 32, 64]
COMPACT_PROGRAMS = 8192  # minimum number of programs that compact, if the rows are long enough [4096, 8192, 16384]

# Case: select bars-1x16777216-k10, bars-4x16777216-k1024 on cuda. Chosen on: an unrecorded machine.
# If rows are few and long, the whole GPU waits for a row that falls back to radix selection. To make that rarer,
# samples are then single values, so that runs of equal values do not distort them, and values are compared with the
# threshold exactly, so that zeros of both signs do not cause additional survivors.
FEW_ROWS = 64
LONG_ROW = 1 << 20

# Case: select topk on cuda. Chosen on: an unrecorded machine.
# If one program per row would not keep a GPU busy, several programs share a row, in parts of some tiles. A row of few
# tiles is not shared, because the additional launches would take as long as one program.
RADIX_TILE = 2048  # values that a program reads in one step [1024, 2048, 4096]
RADIX_WARPS = 4
RADIX_PROGRAMS = 16384  # number of programs to reach; if rows are fewer, several programs share each row
RADIX_PART_TILES = 2
RADIX_SHARED_TILES = 8  # minimum number of tiles in a row that several programs share
SORTED_RUN = 2048  # pairs per sorted run of survivors
MERGE_TILE = 512  # positions that a program fills when two runs are merged [256, 512, 1024]
SCRATCH_BYTES = 1 << 30  # bytes of scratch memory of one block of rows

# Case: tang2015 table-I on cuda. Chosen on: an unrecorded machine.
# Methods "hierarchical" and "bitonic" on a GPU.
BUILD_TILE = 4096  # entries that a program of "hierarchical" reads to compute minima
BUILD_WIDTH = 1024  # maximum number of members of one group that a program of "hierarchical" reads at once
LEAST_SLOTS = 512  # minimum number of slots for a row's candidates in method "hierarchical"
BITONIC_TILE = 512  # pairs that a program sorts at once: about 16 per thread of a warp
BITONIC_PROGRAMS = 2048  # number of programs that keeps a GPU busy: if there are fewer rows, they are cut into parts
BITONIC_MERGE_SHARE = 1 / 25  # time of merging the run of one more part, relative to the time of a tile

# Not measured. Ordering and merging of neighbour lists on a GPU.
ORDER_BLOCK = 1024  # entries per program that encodes or decodes pairs
ORDER_WARPS = 4
LIST_LENGTHS = (16, 32, 64, 256, 1024)  # padded lengths of the lists that a network sorts; each has a kernel of its own
LIST_ENTRIES = 512  # minimum number of entries per program that sorts lists
LONG_LIST_BYTES = 1 << 28  # scratch memory for sorting a batch of long lists

# Case: select few-16x131072-k1024, few-1x1048576-k2048 on cuda. Chosen on: an unrecorded machine.
# Few long rows are cut into parts, each held by one program.
PARTS_ROWS = 64  # maximum number of rows of a matrix whose rows are cut into parts
PARTS_COLUMNS = 1 << 20  # maximum length of rows that are cut into parts
PARTS_LARGEST_TILE = 16384  # maximum number of 32-bit keys per program: twice as many would not all fit into registers
PARTS_TILE = 8192  # keys of a part; a row of at most this many keys is not cut [4096, 8192, 16384]
PARTS_OVER_K = 4  # minimum number of keys in a part, as a multiple of k [4, 8]
PARTS_PER_THREAD = 32  # maximum number of keys per thread [16, 32]
PARTS_LEAST_WARPS = 4
PARTS_SLACK = 0.25  # pairs beyond k that a part may keep, as a share of k
PARTS_SLACK_LEAST = 32  # pairs beyond k that a part may always keep
PARTS_COLLECTED_RUNS = 2  # runs of adjacent values that a thread collects in one step
PARTS_KEPT = 256  # maximum number of shapes whose launches are kept for later calls
COMPILED_SHAPES = 4096  # maximum number of shapes and options of selections whose kernels are known to be compiled
