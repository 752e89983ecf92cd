"""The measured constants of the cost model, by instruction set or GPU, and how each was measured.

Choices of method, precision level and group size depend only on ratios of these constants. On other machines of the
same kind, predicted times are right within a factor of about two.

    BRUTE, TREE on the CPU   CPU time of searches of SIFT reduced by PCA, on two cores of an AMD EPYC of family 26;
                             python -m benchmarks run kdtree --case 'auto-*' measures how good the resulting choices are
    BRUTE of "gemm"          "avx512": fitted to uniform points and SIFT of the cases 'auto-*', two cores of an EPYC of
                             family 25, 2026-11-24; "avx2": one core of another EPYC, which offers no AVX-512 to
                             programs, 10,000 to 1,000,000 uniform points of 4 to 384 dimensions, 2026-11-25
    BRUTE of "few"           "avx2": SIFT and uniform points of the cases 'auto-*' on the EPYC without AVX-512,
                             2026-11-25; "avx512" and "amx": two cores of a Xeon of model 207 with AMX, 2026-11-26,
                             10,000 to 1,000,000 points of 2 to 12 dimensions
    BRUTE["amx"]             CPU time of one core of a Xeon of model 143 or later: 60,000 Gaussian points of 4 to
                             960 dimensions, 1 and 2,000 queries, k = 10 and 100; start, point and query: two cores of
                             model 207, 2026-11-26, SIFT and uniform points of 15 to 27 dimensions of 'auto-*';
                             pair: a shared core of a Xeon of model 167, 2026-11-28, 2,000 queries, 16 to 256 dimensions
    TREE["amx"]              two cores of a Xeon of model 207, 2026-11-26: with uniform points and SIFT of 2 to 10
                             dimensions, searches took 1.1 to 1.7 times as long as on the EPYC of family 26, and builds
                             took as long
    DIRECT, SCREEN_START     one core of a Xeon of model 207, process time of 1 to 100 queries among 100 to 2,000 points
    TREE, misses             the EPYC without AVX-512: a million uniform points of 5, 10 and 15 dimensions
    TREE, builds             the EPYC without AVX-512: 10,000 to 1,000,000 uniform points of 3 and 8 dimensions; start:
                             one core of an EPYC (Zen 4), 2026-11-27, 130 to 9,000 uniform points of 2 to 8 dimensions
    ESTIMATED                start, query: one core of an EPYC (Zen 4), 2026-11-23, 1 and 100 queries among 1,000 points
                             of 3, 128 and 784 dimensions; the others: a shared core of an EPYC (Zen 4), 2026-11-27,
                             process time of tonari.plan(..., direct=True, threads=1): 20 to 100 queries among 10,000
                             and 30,000 Gaussian points of 16, 128 and 768 dimensions, k = 5 to n / 2, also with
                             isa="avx2" and "generic"; columns: the same EPYC, 100 queries among 1,000 and 3,000 points
                             of 1 to 64 dimensions; "amx": not measured, but the EPYC's rates slowed down by the factor
                             of TREE["amx"], because they are compared with BRUTE["amx"], which was measured on a Xeon
    DIRECT, kept             one core of an EPYC (Zen 4), 2026-11-27, process time of tonari.plan(..., direct=True,
                             threads=1): 100 queries or fewer among 1,000, 10,000 and 30,000 Gaussian points of 3, 128
                             and 784 dimensions, k = 1 to n, without the cost of pairs; the code is the same for every
                             instruction set, except for the computation of values
    BRUTE, neighbours        "avx512" and "avx2" of "gemm": as ESTIMATED, with direct=False, for 50 to 5,000 queries
    PRODUCTS, packing        python -m benchmarks run exact_cpu
    BITS                     one core of a shared Xeon of model 207: 64 queries among 200,000 rows of 128 bytes; byte:
                             one core of an EPYC (Zen 4), 2026-11-28, process time, 1,000,000 rows of 128 bytes
    LISTED_BITS              one core of a shared EPYC of family 26, process time: 20,000 points for each of 200
                             queries, anywhere in 256 MiB of rows of 16 to 512 bytes
    BITS["cuda"]             not measured, but computed for an H200: 8 bytes written and read; per byte of a pair, 16
                             int8 operations at 10^15 per second; per pair, 4 bytes written at 3.5 TB/s and read at
                             2.5 TB/s
    "neon"                   not measured: the rates of AVX2, with twice the time for arithmetic, since registers are
                             half as wide
    BRUTE, TREE on CUDA      an H200; python -m benchmarks run kdtree --case 'auto-*' --device cuda
    CARD                     an H100; python -m benchmarks run exact_cuda; link_of_several, peer and further: two H100s
                             that search 4,000,000 x 96 float32 rows, in host memory or on one of them, 2026-11-27;
                             further was 1.3 to 2.6 ms in four searches on one and on two of them
    DESCENT                  10^6 points of 128 dimensions; python -m benchmarks run nn_descent; for "gnnd" an H100,
                             8 rounds; python -m benchmarks run wang2021 --case curve-sift
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

from tonari.costs.formulas import BitCosts, BruteCosts, DescentCosts, DirectCosts, TreeCosts

_Costs = TypeVar("_Costs", BruteCosts, DirectCosts, TreeCosts)


def _half_as_wide(costs: _Costs, *arithmetic: str) -> _Costs:
    """Return the costs with the fields `arithmetic` doubled, for an instruction set with registers half as wide."""
    return replace(costs, **{name: 2 * getattr(costs, name) for name in arithmetic})


# Keys: the instruction set or "cuda", and the form of the metric; for rows of few columns, "few" instead of "gemm".
BRUTE = {
    ("generic", "gemm"): BruteCosts(
        start=1e-3, point=8.8e-8, point_value=4.5e-9, query=3.8e-6, query_neighbour=2.2e-7, pair=4e-10, pair_value=5e-11
    ),
    ("generic", "elementwise"): BruteCosts(
        start=8e-4, point=5.1e-8, point_value=6.7e-9, query=3.7e-6, query_neighbour=2e-7, pair=4.1e-10,
        pair_value=1.5e-10,
    ),
    ("avx2", "gemm"): BruteCosts(
        start=8e-4, point=8.5e-8, point_value=2.8e-9, query=5e-6, query_neighbour=1.1e-7, neighbour_value=7.5e-10,
        pair=1.9e-10, pair_value=1.2e-11, crowd=1.5e-9, coarse=0.03,
    ),
    ("avx2", "few"): BruteCosts(
        start=8e-4, point=1.12e-7, point_value=5e-9, query=5e-6, query_neighbour=2.8e-7, pair=7.2e-11,
        pair_value=1.85e-11,
    ),
    ("avx2", "elementwise"): BruteCosts(
        start=7e-4, point=5.4e-8, point_value=5.1e-9, query=3e-6, query_neighbour=2.2e-7, pair=6.7e-11,
        pair_value=3.5e-11,
    ),
    ("avx512", "gemm"): BruteCosts(
        start=8e-4, point=8.6e-8, point_value=2.8e-9, query=4.3e-6, query_neighbour=1.1e-7, neighbour_value=7.5e-10,
        pair=9.4e-11, pair_value=5.6e-12, crowd=1.5e-9, coarse=0.03,
    ),
    ("avx512", "elementwise"): BruteCosts(
        start=7e-4, point=5e-8, point_value=5e-9, query=2.6e-6, query_neighbour=1.8e-7, pair=5.4e-11,
        pair_value=1.75e-11,
    ),
    ("cuda", "gemm"): BruteCosts(
        start=7e-4, point=3e-10, query=1e-8, query_neighbour=2e-9, pair=2.8e-13, pair_value=2.7e-15, blurred=1e-6
    ),
    ("cuda", "elementwise"): BruteCosts(
        start=7e-4, point=1e-10, query=1e-8, query_neighbour=2e-9, pair=3.2e-13, pair_value=1e-13
    ),
}  # fmt: skip
BRUTE["amx", "gemm"] = BruteCosts(
    start=1.3e-3, point=9e-8, point_value=6.2e-9, query=6e-6, query_neighbour=1.8e-7, neighbour_value=8.5e-10,
    pair=1.8e-10, pair_value=1.8e-12, crowd=1.5e-9,
)  # fmt: skip
BRUTE["amx", "elementwise"] = BRUTE["avx512", "elementwise"]
BRUTE["avx512", "few"] = BRUTE["amx", "few"] = replace(
    BRUTE["avx2", "few"], start=1.3e-3, query=3.8e-6, query_neighbour=2.2e-7
)
BRUTE["neon", "gemm"] = _half_as_wide(BRUTE["avx2", "gemm"], "point_value", "pair_value")
BRUTE["neon", "elementwise"] = _half_as_wide(BRUTE["avx2", "elementwise"], "point_value", "pair_value")

_XEON = 1.4  # seconds of a core of a Xeon with AMX, divided by those of an EPYC's core for the same code

# Costs of small searches that compute all exact values. SCREEN_START is the time of the smallest search with a screen
# among packed points; SCREEN_START_UNPACKED includes the time to check and pack a few points.
DIRECT = {
    "generic": DirectCosts(start=1.5e-5, query=1e-6, pair=1.5e-8, value=1e-9, kept=2e-8),
    "avx2": DirectCosts(start=1.5e-5, query=1e-6, pair=1.2e-8, value=3e-10, kept=2e-8),
    "avx512": DirectCosts(start=1.5e-5, query=1e-6, pair=1e-8, value=1.7e-10, kept=2e-8),
}
DIRECT["amx"] = DIRECT["avx512"]
DIRECT["neon"] = _half_as_wide(DIRECT["avx2"], "value")
# Costs as in DIRECT, for searches that first rule out most points by estimates in float32.
ESTIMATED = {
    "generic": DirectCosts(
        start=6e-6, query=5e-7, pair=2.7e-9, value=1.5e-10, kept=2e-9, neighbour=1.5e-8, neighbour_value=5e-10,
        columns=16,
    ),
    "avx2": DirectCosts(
        start=6e-6, query=5e-7, pair=1.2e-9, value=6.5e-11, kept=2e-9, neighbour=1.5e-8, neighbour_value=3e-10,
        columns=16,
    ),
    "avx512": DirectCosts(
        start=6e-6, query=5e-7, pair=1.4e-9, value=4e-11, kept=2e-9, neighbour=1.5e-8, neighbour_value=3e-10, columns=16
    ),
}  # fmt: skip
ESTIMATED["amx"] = ESTIMATED["avx512"].slower(_XEON)
ESTIMATED["neon"] = _half_as_wide(ESTIMATED["avx2"], "value", "neighbour_value")
SCREEN_START, SCREEN_START_UNPACKED = 5e-5, 2.5e-4

_BUILD = {"start": 6e-5, "split": 1.1e-8, "placed": 3.5e-9}  # the code is the same for every instruction set
TREE = {
    "generic": TreeCosts(
        **_BUILD, query=1e-7, neighbour=5e-9, neighbour_value=2.7e-9, leaf=5.5e-8, node=8.7e-8, node_value=1.2e-8,
        point=1e-10, value=2e-10, near=0.0, far=3.3e-11, miss=1.3e-7, double=1.6, ordered=32,
    ),
    "avx2": TreeCosts(
        **_BUILD, query=2.6e-7, neighbour=3.3e-9, neighbour_value=1.7e-9, leaf=4.4e-8, node=5.9e-8, node_value=1e-9,
        point=1e-10, value=2.5e-11, near=8e-12, far=3.3e-11, miss=1.3e-7, double=1.6, ordered=32,
    ),
    "avx512": TreeCosts(
        **_BUILD, query=4e-8, neighbour=1.9e-9, neighbour_value=2e-9, leaf=0.0, node=6.6e-8, node_value=2.1e-9,
        point=4.6e-10, value=2.2e-11, near=1.3e-11, far=3.3e-11, miss=1.3e-7, double=1.6, ordered=32,
    ),
    "cuda": TreeCosts(
        start=1.9e-3, split=4.2e-11, placed=1e-10, query=4e-10, neighbour=2.6e-11, neighbour_value=0.0, leaf=0.0,
        node=0.0, node_value=2.8e-11, point=0.0, value=4.4e-13, near=0.0, far=0.0, miss=0.0, double=2.0,
    ),
}  # fmt: skip
# Trees do not use AMX. But the rates of "avx512" are from an EPYC, and CPUs with AMX are Xeons.
TREE["amx"] = replace(TREE["avx512"].slower_search(_XEON), start=6e-4)
TREE["neon"] = _half_as_wide(TREE["avx2"], "node_value", "value")

# Keys: the device, and the update of a round ("pull" or "gnnd").
DESCENT = {
    ("cpu", "pull"): DescentCosts(start=2e-2, point=3.6e-8, value=1.1e-10),
    ("cuda", "pull"): DescentCosts(start=5e-3, point=1.4e-10, value=6.5e-13),
    ("cuda", "gnnd"): DescentCosts(start=5e-3, point=2.8e-10, value=1.3e-12),
}

# time of brute force that uses each product of two rows for both rows, as a share of the time without this
SHARED = 0.8
READ_RATE = 1e10  # bytes per second that one core reads from memory
LOOK_BYTE = 6e-11  # seconds of one core to check a byte of input, in memory or in the page cache

# Operations per second of one core, by instruction set and precision; they decide which precision level is tried next.
PRODUCTS = {
    ("generic", "float32"): 2e10,
    ("avx2", "float32"): 1.3e11,
    ("avx2", "int8"): 4.2e11,
    ("neon", "float32"): 6.5e10,
    ("neon", "int8"): 2.1e11,
    ("avx512", "float32"): 2.5e11,
    ("avx512", "int8"): 6.8e11,
    ("amx", "float32"): 1.2e11,
    ("amx", "bfloat16"): 1e12,
    ("amx", "int8"): 1.6e12,
}
MULTIPLY = 1e-10  # seconds of one core for contracting rows, per column and contracted column of a row
# Seconds to refine a candidate that survives the screen and to place it in the answer: per candidate, and per dimension
# of a candidate.
SURVIVOR, SURVIVOR_VALUE = 6e-8, 3e-10


class CardRates(NamedTuple):
    """Rates of one GPU, which decide the size of groups and the slabs of the streamed route.

    Attributes
    ----------
    read_minima, write_minima, read_rows, link : float
        Bytes per second when reading minima, writing minima, gathering rows, and copying from host memory.
    link_of_several, peer : float
        Total bytes per second when copying from host memory to several devices at once, and from one device to all
        others.
    further : float
        Seconds that the host needs for every device of a search but the first.
    products, elements : float
        Operations per second of matrix units, and of units that compute elementwise terms.
    cpu_member, cpu_value : float
        Seconds of one host core per member of a group that it refines, and per value of the member.
    """

    read_minima: float
    write_minima: float
    read_rows: float
    link: float
    link_of_several: float
    peer: float
    further: float
    products: float
    elements: float
    cpu_member: float
    cpu_value: float


CARD = CardRates(
    read_minima=2.3e12, write_minima=1e13, read_rows=2.8e12, link=2e10, link_of_several=1.6e10, peer=4e11, further=2e-3,
    products=5.5e14, elements=2e13, cpu_member=6e-8, cpu_value=3e-10,
)  # fmt: skip

# Costs of comparing rows of bits, by the kernel's instruction set or "cuda".
BITS = {
    "generic": BitCosts(byte=4e-10, pair=4e-10, pair_byte=2.1e-10),
    "avx2": BitCosts(byte=4e-10, pair=4e-10, pair_byte=7e-11),
    "avx512": BitCosts(byte=4e-10, pair=2e-10, pair_byte=2.4e-11),
    "neon": BitCosts(byte=4e-10, pair=4e-10, pair_byte=1.4e-10),
    "cuda": BitCosts(byte=1e-11, pair=2.7e-12, pair_byte=1.6e-14),
}
# Costs of comparing queries with listed points, both as rows of bits; the values of a point are its bytes.
LISTED_BITS = {
    "generic": DirectCosts(start=0.0, query=1e-6, pair=1.2e-8, value=3.6e-10),
    "avx2": DirectCosts(start=0.0, query=1e-6, pair=1.2e-8, value=2.2e-10),
}
