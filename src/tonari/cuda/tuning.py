"""Tuned numbers of all methods on CUDA: compilation, spare memory and copies. They change no answer."""

from tonari.core.units import MIB

# Case: small index-1x100000x128 on cuda. Chosen on: not recorded.
# Free memory that any device is assumed to have. A search that needs no more is planned without querying free memory,
# and its plan is kept, because querying and planning both take longer than a small search.
SPARE = 1024 * MIB
KNOWN_SECONDS = 1.0  # an answer of the driver is reused for this long: a query takes 0.7 ms, longer than a search

# Not measured: a margin.
RESERVE = 512 * MIB  # free memory that plans leave unused, for kernel code and allocator fragmentation

# Case: exact_cuda streamed on cuda. Chosen on: not recorded.
PIECE_BYTES = 4 << 20  # bytes per buffer of a copy through page-locked memory
MOST_THREADS = 8  # more do not copy faster, whether to one device or to several at once
LARGE_BYTES = 32 << 20  # least bytes of a copy by several threads

# Not measured: a bound of memory; 16 float64 lanes and a temporary product of this size take 256 MB.
OWN_VALUES_ROWS = 1 << 20  # rows whose values with themselves are computed at once

# Not measured. Rows of page-locked host memory that a program reads, and the words of a row that it reads at once.
FETCHED_ROWS = 32
FETCHED_WORDS = 64

# Case: exact_cuda cold-k10, cold-k256, cold-graph on cuda. Chosen on: H100.
# Weights for the compile time of a kernel, in words of its bytecode.
INSTRUCTIONS_OF_STEP = 200  # per step of a sorting network (select/cuda/kernels/registers/network.py)
INSTRUCTIONS_OF_PRODUCT = 3000  # per matrix product
VALUES_OF_THREAD = 8  # up to this many values per thread, a kernel compiles as fast as with one
METRICS = 2  # a kernel that has the code of all metrics compiles about half of it

# Not measured: Triton's library has ten times as many, and its other files have far fewer.
WHOLE_BYTES = 32 << 20  # least bytes of a file that is hashed in one piece for Triton's key
