"""Tuned numbers of all methods on CUDA: compilation, spare memory and copies. They change no answer.

The comment above a group names the benchmark cases that time it, and the machine that its numbers were chosen on.
Values in brackets are the alternatives that ``python -m benchmarks tune cuda`` times.
"""

from tonari.core.units import MIB

# Case: small index-1x100000x128 on cuda. Chosen on: not recorded.
# Free memory that any device is assumed to have. A search that needs no more is planned without querying free memory,
# and its plan is kept, because querying and planning both take longer than a small search.
SPARE = 1024 * MIB
KNOWN_SECONDS = 1.0  # the driver's answer is reused for this long, since a query takes 0.7 ms, longer than a search

# Not measured: a margin.
RESERVE = 512 * MIB  # free memory that plans leave unused, for the code of kernels and the allocator's fragmentation

# Case: exact_cuda streamed on cuda. Chosen on: not recorded.
# Copies between host memory and a device.
PIECE_BYTES = 4 << 20  # bytes per buffer of a copy through page-locked memory
MOST_THREADS = 8  # more threads do not copy faster, whether to one device or to several at once
LARGE_BYTES = 32 << 20  # minimum bytes of a copy by several threads

# Not measured: bounds memory. 16 float64 lanes and a temporary product of this size take 256 MB.
OWN_VALUES_ROWS = 1 << 20  # rows per step when inner products of points with themselves are computed

# Not measured. A program copies this many rows from page-locked host memory, this many words of each in one step.
FETCHED_ROWS = 32
FETCHED_WORDS = 64

# Case: exact_cuda cold-k10, cold-k256, cold-graph on cuda. Chosen on: H100.
# Weights in the estimated effort of compiling a kernel, which is counted in words of its bytecode.
INSTRUCTIONS_OF_STEP = 200  # per step of a sorting network (select/cuda/kernels/network.py)
INSTRUCTIONS_OF_PRODUCT = 3000  # per matrix product
VALUES_OF_THREAD = 8  # with up to this many values per thread, a kernel compiles as fast as with one
METRICS = 2  # divisor for kernels with the code of all metrics, about half of which is compiled

# Not measured: Triton's library has ten times as many bytes, and its other files have far fewer.
WHOLE_BYTES = 32 << 20  # minimum bytes of a file that is hashed in one piece for Triton's key
