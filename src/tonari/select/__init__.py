"""k-selection: the k smallest or largest values of every row, by the algorithms of several papers.

    values (rows, n)         NumPy, torch on the CPU or on CUDA
        │  select_k          selection.py     arguments are checked once, here (tonari.inputs)
        ▼
    method and options       registry.py      by name; method="auto" looks up the fastest (auto.py and its table)
        │
        ├── CPU              cpu.py           chunks of rows on several threads; native/select/<method>.hpp
        └── CUDA             cuda/dispatch.py   cuda/<method>.py for methods that auto uses, else papers/<method>.py
        ▼
    Selection                request.py       values and indices; Counters of the operations

    insertion, heap          queues, tang2015 III-B    one row per lane: 16 in a vector register, 32 in a warp
    merge_queue              tang2015 III-C            sorted levels, merged when their heads are out of order
    hierarchical             tang2015 III-E            minima of groups, from the top down; alone or before a queue
    quick                    komarov2014               partition by pivots, with one read per pivot
    bitonic                  Sismanis 2012             truncated bitonic sort
    threshold                matsumoto2015             a bound from samples, compaction, a small heap
    radix                                              finds the k-th key, one digit after another

Buffered Search (tang2015 III-D) and Hierarchical Partition are options of every queue. All methods give the same bits
as a stable sort.
"""

from tonari.select.request import Counters, Selection
from tonari.select.selection import select_k

__all__ = ["Counters", "Selection", "select_k"]
