"""The public function of k-selection, select_k, which checks all arguments before it does any work."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.process.floats import in_default_floats
from tonari.select.auto import choose
from tonari.select.cpu import select_on_cpu
from tonari.select.cuda.dispatch import select_alone
from tonari.select.cuda.parts import repeated
from tonari.select.registry import check_method, make_options
from tonari.select.request import Counters, Request, Selection


@in_default_floats
@inputs.without_gradients("use values.gather(1, indices.long()) with the indices found")
def select_k(
    values: Any,
    k: int,
    *,
    method: str = "auto",
    largest: bool = False,
    sorted: bool = True,
    lengths: Any = None,
    nan: str = "refuse",
    counters: Counters | None = None,
    threads: int | None = None,
    **options: Any,
) -> Selection:
    """Find the k smallest values of every row and their columns.

    Parameters
    ----------
    values : array of shape (rows, n)
        float32, float16, bfloat16, float64, int32 or uint8. NumPy arrays (bfloat16 of ml_dtypes), memory maps, or torch
        tensors on the CPU or on CUDA. There may be zero rows. Rows may have any stride and be read-only; if columns
        are not adjacent in memory, the values are copied.
    k : int
        1 to n.
    method : str
        "auto" uses the method that was fastest on the most similar of many timed shapes. All methods give the same
        answer:

        =============  ==================================================================================
        insertion      sorted queue per row (tang2015 III-B)
        heap           heap per row (tang2015 III-B)
        merge_queue    queue of sorted levels, lazily merged (tang2015 III-C)
        hierarchical   minima of groups, searched from the top down (tang2015 III-E)
        quick          quick multi-select: partition by pivots (komarov2014)
        bitonic        truncated bitonic sort (Sismanis, Pitsianis and Sun 2012)
        threshold      bound from a sample, compaction, partial sort of the rest (matsumoto2015)
        radix          search for the k-th value, one digit after another
        =============  ==================================================================================
    largest : bool
        Whether to find the k largest values instead.
    sorted : bool
        Whether the selected values of each row must be in order. False allows any order of the same values, and may be
        faster.
    lengths : integers of shape (rows,), optional
        For each row a number from 0 to n: only the first ``lengths[i]`` values of row i are considered.
    nan : "refuse" or "last"
        "refuse": NaN is an error. "last": NaN is ordered after every number, also with ``largest``.
    counters : Counters, optional
        A record that is filled with counts of the method's operations. Without it, counting takes no time.
    threads : int, optional
        The number of threads on the CPU. Default: TONARI_NUM_THREADS if it is set, else the number of processors that
        this process may use. Short selections use fewer: one that takes one or two milliseconds uses one thread.
    **options
        Options of the method, which must then be given by name:

        ==============================  ==========================================================================
        insertion, heap, merge_queue    buffer: "none", "own", "full" or "sorted" (Buffered Search, tang2015 III-D);
                                        buffer_size; group, levels (Hierarchical Partition in front of the queue)
        merge_queue                     m: size of the first two levels; aligned: all rows that are processed
                                        together merge when one must
        hierarchical                    group: values per group; levels: lists of minima above the values
        quick                           unit: "warp" or "block" per row (GPU)
        threshold                       samples: size of the sample; batch: rows that share a buffer size;
                                        finish: "heap" or "halving" (both CPU)
        radix                           bits: width of a digit
        ==============================  ==========================================================================

    Returns
    -------
    Selection(values, indices)
        Arrays of shape (rows, k), of the same library and on the same device as the input. The values have the dtype
        and the bits of the input; the indices are int32 column numbers. Rows ascend by (value, index); with ``largest``
        they descend by value. Ties go to the smaller index, also at the k-th place, and -0.0 equals 0.0. Infinities are
        ordinary values. If a row has fewer than k values, the remaining entries have index -1 and value inf
        (``largest``: -inf; for integers the largest or smallest value of the dtype).

    Raises
    ------
    TypeError
        The dtype is not supported, or the method does not have the option.
    ValueError
        The rank or the device is not supported, there is a NaN (the message names the first row that has one), k or a
        length is out of range, the method is unknown, or an option has an invalid value.
    ImportError
        The values are on CUDA and Triton is not installed.

    Notes
    -----
    The answer does not depend on method, threads, instruction set or device. TONARI_ISA=generic, avx2, avx512 or neon
    forces an instruction set. On the CPU a vector register plays the role of the warp of the papers: 16 rows are
    processed together (8 of float64). With ``counters`` a row is never split among threads, so that the counts are
    those of the paper's algorithm.

    - tang2015: Tang, Huang, Eyers, Mills, Guo. Efficient Selection Algorithm for Fast k-NN Search on GPUs. IPDPS 2015.
    - komarov2014: Komarov, Dashti, D'Souza. Fast k-NNG Construction with GPU-Based Quick Multi-Select. PLoS ONE 9(5).
    - matsumoto2015: Matsumoto, Yiu. Accelerating Exact Similarity Search on CPU-GPU Systems. ICDM 2015.
    - Sismanis, Pitsianis, Sun. Parallel Search of k-Nearest Neighbors with Synchronous Operations. HPEC 2012.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> values = np.array([[3.0, 1.0, 2.0, 1.0], [9.0, 8.0, 7.0, np.inf]], dtype=np.float32)
    >>> smallest = tonari.select_k(values, k=2)
    >>> smallest.values.tolist(), smallest.indices.tolist()
    ([[1.0, 1.0], [7.0, 8.0]], [[1, 3], [2, 1]])
    >>> tonari.select_k(values, k=3, largest=True, lengths=[4, 2], method="heap").indices.tolist()
    [[0, 2, 1], [0, 1, -1]]
    """
    if method == "auto" and nan == "last" and not options and lengths is None and counters is None and threads is None:
        found = repeated(values, k, largest, sorted)
        if found is not None:
            return found
    check_method(method)
    if method == "auto" and options:
        raise TypeError(f'got {", ".join(options)} with method="auto", expected options only with a named method')
    matrix, dtype = inputs.as_values(values, "values")
    rows, n = (int(size) for size in matrix.shape)
    k = inputs.check_k(k, n, without_self=False, noun="column")
    largest, sorted = inputs.check_flag(largest, "largest"), inputs.check_flag(sorted, "sorted")
    if nan not in ("refuse", "last"):
        raise ValueError(f'nan={nan!r}: expected "refuse" or "last"')
    if counters is not None and not isinstance(counters, Counters):
        raise TypeError(f"counters: expected tonari.select.Counters(), got {type(counters).__name__}")
    threads = inputs.check_threads(threads)
    on_cpu = isinstance(matrix, np.ndarray)
    if not on_cpu and threads is not None:
        raise ValueError(
            f"threads={threads}: values are on {matrix.device}, and threads applies only on the CPU; leave it out"
        )
    device = "cpu" if on_cpu else "cuda"
    method, chosen = choose(device, rows, n, k, dtype) if method == "auto" else (method, options)
    counts = inputs.as_lengths(lengths, (rows, n), "lengths")
    request = Request(
        matrix,
        dtype,
        k,
        make_options(method, chosen, device),
        largest=largest,
        sorted=sorted,
        lengths=counts if on_cpu or counts is None else inputs.like("torch", counts).to(matrix.device),
        counters=counters,
        check_nan=nan == "refuse" and dtype not in ("int32", "uint8"),
    )
    if counters is not None:
        for field in dataclasses.fields(counters):
            setattr(counters, field.name, None)
    answer, nan_row = select_on_cpu(method, request, threads) if on_cpu else select_alone(method, request)
    if nan_row is not None:
        column = int(np.isnan(_row(values, nan_row)).argmax())
        raise ValueError(f'values: row {nan_row} has NaN in column {column}; replace it first, or pass nan="last"')
    return _like_input(answer, values, dtype) if on_cpu else answer


def _row(values: Any, row: int) -> npt.NDArray[Any]:
    if inputs.kind_of(values) == "torch":
        line: npt.NDArray[Any] = values[row].detach().double().cpu().numpy()
    else:
        line = inputs.as_floats(inputs.held(values)[row])
    return line


def _like_input(found: Selection, values: Any, dtype: str) -> Selection:
    kind = inputs.kind_of(values)
    best, indices = (inputs.like(kind, part) for part in found)
    if dtype == "bfloat16":
        best = best.view(values.dtype)
    return Selection(best, indices)
