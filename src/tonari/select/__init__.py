"""k-selection: the k smallest or largest values of every row, by the papers' algorithms or the fastest of them.

    values (rows, n)         NumPy, torch on the CPU or on CUDA
        │  select_k          selection.py     checked once, at the border (tonari.inputs)
        ▼
    method and options       registry.py      by name; method="auto" asks auto.py and its table
        │
        ├── CPU              cpu.py           chunks of rows over threads; native/select/<method>.hpp
        └── CUDA             cuda/dispatch.py   cuda/<method>.py for what auto takes, papers/<method>.py for the others
        ▼
    Selection                request.py       values and indices; Counters of what was done

    insertion, heap          queues, tang2015 III-B    one row per lane: 16 of a vector register, 32 of a warp
    merge_queue              tang2015 III-C            levels that are merged when their heads are out of order
    hierarchical             tang2015 III-E            minima of groups, from the top down; alone or before a queue
    quick                    komarov2014               partition by pivots, in one read each
    bitonic                  Sismanis 2012             truncated bitonic sort
    threshold                matsumoto2015             samples, a bound, compaction, a small heap
    radix                                              a digit at a time

Buffered Search (tang2015 III-D) and Hierarchical Partition are options of every queue. All methods give the same bits;
reference.py says which: a stable sort, and slow models (models.py) that count what the queues do.
"""

from tonari.select.request import Counters, Selection
from tonari.select.selection import select_k

__all__ = ["Counters", "Selection", "select_k"]
