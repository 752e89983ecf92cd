"""Tuned numbers of all methods on CUDA: compilation, spare memory and copies. They change no answer.

The comment above a group names the benchmark cases that time it, and the machine whose timings chose the numbers.
Values in brackets are the alternatives that ``python -m benchmarks tune cuda`` times.
"""

from tonari.core.units import MIB

# Case: small index-1x100000x128 on cuda. Chosen on: an unrecorded machine.
# Free memory that any device is assumed to have. A search that needs no more is planned without querying free memory,
# and its plan is kept, because querying and planning both take longer than a small search.
SPARE = 1024 * MIB
KNOWN_SECONDS = 1.0  # how long the driver's answer is reused: a query takes 0.7 ms, longer than a small search

# Not measured: a margin.
RESERVE = 512 * MIB  # free memory that plans leave unused, for the code of kernels and the allocator's fragmentation

# Case: exact_cuda streamed on cuda. Chosen on: an unrecorded machine.
# Copies between host memory and a device.
PIECE_BYTES = 4 << 20  # bytes per buffer of a copy through page-locked memory
MOST_THREADS = 8  # maximum number of threads that copy, to one device or to several: more do not copy faster
LARGE_BYTES = 32 << 20  # minimum bytes of a copy that several threads share

# Not measured: bounds memory. 16 float64 lanes and a temporary product of this size take 256 MB.
OWN_VALUES_ROWS = 1 << 20  # points per step when the inner product of each point with itself is computed

# Not measured. The work of a program that copies rows from page-locked host memory.
FETCHED_ROWS = 32  # rows per program
FETCHED_WORDS = 64  # words of each row that are copied in one step

# Case: exact_cuda cold-k10, cold-k256, cold-graph on cuda. Chosen on: H100.
# Weights in the estimated effort of compiling a kernel, which is counted in words of its bytecode.
INSTRUCTIONS_OF_STEP = 200  # weight of a step of a sorting network (select/cuda/kernels/registers/network.py)
INSTRUCTIONS_OF_PRODUCT = 3000  # weight of a matrix product
VALUES_OF_THREAD = 8  # maximum number of values per thread for which a kernel compiles as fast as for one
METRICS = 2  # divisor of the effort for a kernel with the code of all metrics, since about half of it is compiled

# Not measured: Triton's largest file, a library, is ten times larger than WHOLE_BYTES, and its other files are smaller.
WHOLE_BYTES = 32 << 20  # minimum bytes of a file that is hashed in one piece for Triton's key
